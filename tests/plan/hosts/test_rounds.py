"""Rounds: when the policy is asked, what it sees, and what is handed on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.histories import ONE_POINT, history, host_history

from dltools.notation.times import MICRO
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.hosts.rounds import Rounds
from dltools.plan.policy.interface import Allocation, Cluster, Decision, Requirements, State
from dltools.plan.realisation.options import Mode, RealisationOptions
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory


@dataclass(frozen=True)
class Share:
    share: float = 0.5


class Counting:
    """Gives each job the same share, counts its rounds in its state and notes what it sees."""

    name = "counting"
    help = "for tests"
    parameters = Share

    def __init__(self, required: Requirements) -> None:
        self.required = required
        self.seen: list[Cluster] = []
        self.states: list[State] = []

    def requirements(self, parameters: Share) -> Requirements:  # noqa: ARG002
        return self.required

    def decide(self, cluster: Cluster, parameters: Share, state: State) -> Decision:
        self.seen.append(cluster)
        self.states.append(state)
        allocations = {job.id: Allocation(parameters.share, "-", "") for job in cluster.host.jobs}
        return Decision(allocations, {"rounds": state.get("rounds", 0) + 1})


def rounds_of(
    required: Requirements, mode: Mode = Mode.QUOTA, memory: State | None = None
) -> tuple[Rounds, Counting]:
    policy = Counting(required)
    return Rounds(policy, Share(), RealisationOptions(mode), memory or {}), policy


def no_hosts() -> Mapping[str, HostHistory]:
    pytest.fail("the policy does not look at other hosts")


def job(name: str, threads: int | None = None) -> ContainerHistory:
    made = history(ONE_POINT, name=name)
    made.use.threads = threads
    return made


def run(
    rounds: Rounds, host: HostHistory, at_s: float, *, target_met: bool = False
) -> Realisation | None:
    host.sampled_at = round(at_s * MICRO)
    return rounds.run(host, no_hosts, target_met=target_met)


def test_the_policy_is_asked_when_a_round_is_due_and_only_then() -> None:
    rounds, policy = rounds_of(Requirements(interval_s=10.0))
    host = host_history(job("a"))
    ran = [run(rounds, host, at_s) is not None for at_s in (0, 5, 10, 15, 20)]
    assert ran == [True, False, True, False, True]
    assert [cluster.now for cluster in policy.seen] == [0, 10 * MICRO, 20 * MICRO]


def test_without_jobs_no_round_runs() -> None:
    rounds, policy = rounds_of(Requirements(interval_s=10.0))
    assert run(rounds, host_history(history(name="silent")), 0) is None
    assert policy.seen == []


@pytest.mark.parametrize("targets", [True, False])
def test_a_met_target_starts_a_round_of_a_policy_that_looks_at_targets(targets) -> None:
    rounds, policy = rounds_of(Requirements(interval_s=10.0, targets=targets))
    host = host_history(job("a"))
    run(rounds, host, 0)
    assert (run(rounds, host, 1, target_met=True) is not None) is targets
    assert len(policy.seen) == 1 + targets


@pytest.mark.parametrize(("silent_jobs", "rounds_run"), [(True, 2), (False, 1)])
def test_a_second_report_starts_a_round_where_new_jobs_explore(silent_jobs, rounds_run) -> None:
    required = Requirements(interval_s=10.0, silent_jobs=silent_jobs)
    rounds, policy = rounds_of(required, Mode.PRIORITY)
    a = history({"loss": [(0.0, 1.0)]}, [(0.0, 0.0)], name="a")
    host = host_history(a)
    run(rounds, host, 0)
    a.add_points("loss", ([MICRO], [0.9], [None]))
    run(rounds, host, 1)
    a.add_points("loss", ([2 * MICRO], [0.8], [None]))  # the third tells nothing new
    run(rounds, host, 2)
    assert len(policy.seen) == rounds_run


def test_a_round_returns_the_settings_and_keeps_the_allocations() -> None:
    rounds, _ = rounds_of(Requirements(interval_s=10.0))
    a = job("a")
    host = host_history(a)
    found = run(rounds, host, 0)
    assert found is not None
    assert found.settings == {a.id: {"cpus": 1.0}}  # half of two CPUs
    assert found.queue == host.queue
    assert host.decision.allocations == {a.id: Allocation(0.5, "-", "")}
    assert rounds.planned(host, is_lasting=False).settings == found.settings


def test_a_policy_sees_its_host_alone() -> None:
    rounds, policy = rounds_of(Requirements(interval_s=10.0))
    a = job("a")
    run(rounds, host_history(a), 0)
    (cluster,) = policy.seen
    assert list(cluster.hosts) == ["host"]
    assert (cluster.sampled, cluster.host.jobs, cluster.host.previous) == ("host", (a,), {})
    assert cluster.interval_s == 10.0


def test_a_policy_that_looks_at_the_cluster_sees_all_hosts() -> None:
    rounds, policy = rounds_of(Requirements(interval_s=10.0, cluster=True))
    a, b = job("a"), job("b")
    first, second = host_history(a), host_history(b, cpus=4.0, name="other")
    rounds.run(first, lambda: {one.name: one for one in (first, second)}, target_met=False)
    (cluster,) = policy.seen
    assert {name: one.jobs for name, one in cluster.hosts.items()} == {"host": (a,), "other": (b,)}
    assert cluster.hosts["other"].cpus == 4.0
    assert second.decision.allocations == {}  # only the sampled host gets a decision


def test_the_policy_s_state_is_handed_from_round_to_round_and_host_to_host() -> None:
    rounds, policy = rounds_of(Requirements(interval_s=10.0), memory={"rounds": 7})
    first, second = host_history(job("a")), host_history(job("b"), name="other")
    run(rounds, first, 0)
    run(rounds, second, 1)
    run(rounds, first, 10)
    assert policy.states == [{"rounds": 7}, {"rounds": 8}, {"rounds": 9}]
    assert rounds.memory == {"rounds": 10}


def test_the_next_round_sees_the_allocations_of_the_last() -> None:
    rounds, policy = rounds_of(Requirements(interval_s=10.0))
    a = job("a")
    host = host_history(a)
    run(rounds, host, 0)
    run(rounds, host, 10)
    assert policy.seen[1].host.previous == {a.id: Allocation(0.5, "-", "")}


def test_a_turn_of_the_queue_changes_settings_without_a_round() -> None:
    # Two jobs of two threads on two CPUs: equal jobs change places after 5 s, less a twentieth.
    rounds, policy = rounds_of(Requirements(), Mode.PRIORITY)
    a, b = job("a", 2), job("b", 2)
    host = host_history(a, b)
    weights: list[Any] = []
    for at_s in (0, 4.7, 4.75, 4.8, 9.5):
        found = run(rounds, host, at_s)
        weights.append(found and [found.settings[one.id]["weight"] for one in (a, b)])
    assert weights == [[1024, 10], None, [10, 1024], None, [1024, 10]]
    assert len(policy.seen) == 1
