"""Hosts shared among users first: shares, turns, and that nothing changes without users."""

import math
from typing import Any

import pytest
from helpers.examples import some_of
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.policy import registry
from dltools.plan.policy.baselines import FAIR
from dltools.plan.policy.by_user import FairAmongUsers, user_shares
from dltools.plan.policy.interface import Cluster, Decision, HostState
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.options import Mode, QueueParameters, RealisationOptions
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.resource_use import Use
from dltools.sim.simulation import Observer, Simulation
from dltools.sim.workload import Workload
from dltools.sim.workload_file import read_workload

POLICIES = [name for name in registry.policies([]) if name not in ("noop", "specon", "fair")]

OWNED = st.lists(
    st.tuples(st.sampled_from(["", "ann", "bob", "eve"]), st.sampled_from([0.5, 1.0, 2.0, 100.0])),
    min_size=1,
    max_size=8,
)


def job(number: int, user: str, priority: float = 1.0) -> ContainerHistory:
    made = ContainerHistory(f"c{number}", f"job-{number}", 1_000_000, use=Use(threads=2))
    labels = {"dltools.user": user} if user else {}
    made.label(labels | ({"dltools.priority": repr(priority)} if priority != 1 else {}))
    made.use.add_samples([1_000_000, 2_000_000], [0.0, 1.0 + number])
    made.add_points("loss", ([1_500_000, 2_000_000], [2.0, 1.0 / (1 + number)], [1, 2]))
    return made


def decide(jobs: list[ContainerHistory], policy: Any = FAIR) -> Decision:
    host = HostState("node", 4.0, tuple(jobs), sampled_at=2_000_000)
    cluster = Cluster(2_000_000, "node", {"node": host}, 20.0)
    return policy.decide(cluster, build(policy.parameters, {}), {})


def shares(decision: Decision) -> dict[str, float]:
    return {key: one.share or 0.0 for key, one in decision.allocations.items()}


def test_a_user_with_one_job_gets_as_much_as_one_with_five() -> None:
    found = shares(decide([*(job(n, "ann") for n in range(5)), job(5, "bob")]))
    assert found == pytest.approx({**{f"c{n}": 0.1 for n in range(5)}, "c5": 0.5})


def test_priority_weighs_within_a_user_alone() -> None:
    found = decide([job(0, "ann", 3.0), job(1, "ann"), job(2, "bob", 0.5)])
    assert shares(found) == pytest.approx({"c0": 0.375, "c1": 0.125, "c2": 0.5})
    said = "equal share of 2 users, of 2 jobs of user ann by priority 3"
    assert found.allocations["c0"].reason == said


def test_jobs_of_nobody_are_one_user_together() -> None:
    found = shares(decide([job(0, ""), job(1, ""), job(2, "bob")]))
    assert found == pytest.approx({"c0": 0.25, "c1": 0.25, "c2": 0.5})


@given(OWNED)
def test_shares_sum_to_the_host_and_users_get_the_same(owned) -> None:
    jobs = [job(n, user, priority) for n, (user, priority) in enumerate(owned)]
    found = shares(decide(jobs))
    assert math.fsum(found.values()) == pytest.approx(1)
    users = {one.user for one in jobs}
    for user in users:
        own = [found[one.id] for one in jobs if one.user == user]
        assert math.fsum(own) == pytest.approx(1 / len(users))
    for one in jobs:
        for other in jobs:
            if one.user == other.user:
                ratio = found[one.id] / found[other.id]
                assert ratio == pytest.approx(one.priority / other.priority)


@given(OWNED, st.sampled_from(POLICIES))
def test_so_does_each_policy_that_is_asked_to(owned, name) -> None:
    policy = registry.get(name, [])
    jobs = [job(n, user, priority) for n, (user, priority) in enumerate(owned)]
    if len({(one.user, one.priority) for one in jobs}) < 2:
        assert decide(jobs, FairAmongUsers(policy)) == decide(jobs, policy)
        return
    found = decide(jobs, FairAmongUsers(policy))
    given_ = {key: one.share for key, one in found.allocations.items() if one.share is not None}
    users = {one.user for one in jobs if one.id in given_}
    for user in users:
        own = [given_[one.id] for one in jobs if one.user == user and one.id in given_]
        assert math.fsum(own) == pytest.approx(1 / len(users))


def test_shares_of_a_policy_stay_in_proportion_within_a_user() -> None:
    jobs = [job(0, "ann"), job(1, "ann"), job(2, "bob")]
    found = user_shares(jobs, {"c0": 0.6, "c1": 0.2, "c2": 0.01})
    assert found == pytest.approx({"c0": 0.375, "c1": 0.125, "c2": 0.5})


def one_against(count: int) -> Workload:
    """One job of bob's and many of ann's, all alike: one thread each, on one CPU."""
    common = "work = 9000\nepochs = 9000\n"
    jobs = [
        f'[[job]]\nname = "j{number}"\nuser = "{"ann" if number else "bob"}"\n{common}'
        for number in range(count + 1)
    ]
    return read_workload('[[node]]\nname = "n"\ncpus = 1\n' + "".join(jobs), "test")


def used_by(
    workload: Workload, until: float, name: str, mode: Mode | None, users: str = "alone"
) -> list[float]:
    """Return the CPU seconds of each job at a time, without those that it explored."""
    policy, explore = registry.get(name, []), 1.0
    options = RealisationOptions(mode, queue=QueueParameters(explore=explore, users=users))
    watch = Observer(lambda *_: None, 2.0)  # else what is used is known only up to the last event
    simulation = Simulation(workload, policy, build(policy.parameters, {}), options, observer=watch)
    return [one.cpu - explore for one in simulation.run(until)]


@pytest.mark.parametrize(
    "mode", some_of([None, Mode.QUOTA, Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE], 3)
)
def test_one_job_gets_as_much_cpu_as_five_in_each_mode(mode) -> None:
    bob, *ann = used_by(one_against(5), 400.0, "fair", mode)
    assert bob == pytest.approx(math.fsum(ann), rel=0.1)
    assert max(ann) < 1.6 * min(ann)


@pytest.mark.parametrize("name", ["flowcon", "las"])
def test_other_policies_do_so_when_asked(name) -> None:
    workload = one_against(5)
    bob, *ann = used_by(workload, 400.0, name, Mode.PRIORITY, users="fair")
    assert bob == pytest.approx(math.fsum(ann), rel=0.25)
    bob, *ann = used_by(workload, 400.0, name, Mode.PRIORITY)
    assert bob < 0.5 * math.fsum(ann)
