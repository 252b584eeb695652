"""SpeCon, worked by hand: the ladder, and which job goes where, if any."""

from dataclasses import replace
from typing import Any

import pytest

from dltools.notation.times import MICRO
from dltools.observations.host_samples import DeviceUse
from dltools.plan.policy.interface import ActionKind, Cluster, HostState
from dltools.plan.policy.specon import (
    SPECON,
    KnownJob,
    Parameters,
    lasting_name,
    load_of,
    transition,
)
from dltools.plan.policy.srtf import SRTF
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.metric_series import Series
from dltools.plan.signals.resource_use import Use

NOW = 100 * MICRO
CC, PC = "CC", "PC"
ON_GPU = {"GPU-1": DeviceUse(0.9)}


def job(name: str, attained: float = 100.0) -> ContainerHistory:
    made = ContainerHistory(name, name, 0, use=Use(0, samples=[(NOW, attained)]))
    made.progress.metrics["loss"] = Series(times=[NOW], values=[1.0], steps=[None])
    return made


def cluster(sampled: str = "h", **hosts: list[ContainerHistory]) -> Cluster:
    nodes = {host: HostState(host, 2.0, tuple(jobs)) for host, jobs in hosts.items()}
    return Cluster(NOW, sampled, nodes, 10.0)


def memory(**classes: str) -> dict[str, object]:
    """What a round has kept of jobs, as host_job=class; best growth 1, now 0.01 if converged."""
    best: dict[str, dict[str, object]] = {}
    for key, job_class in classes.items():
        host, name = key.split("_")
        known = KnownJob(1.0, job_class, 0.01 if job_class == CC else 0.9)
        best.setdefault(host, {})[f"{name}@0"] = known._asdict()
    return {"best": best, "moved": {}, "last": None}


def with_loads(found: Cluster, state: dict[str, object]) -> dict[str, object]:
    """What is remembered once each host has had a round."""
    best: dict[str, dict[str, Any]] = state.get("best", {})  # type: ignore[assignment]
    loads = {}
    for name, host in found.hosts.items():
        own = {run_id: KnownJob(**one) for run_id, one in best.get(name, {}).items()}
        loads[name] = load_of(host, own, (), found, "progressing")._asdict()
    return state | {"loads": loads}


def migration(found: Cluster, state: dict[str, object], **given: object) -> tuple[str, str] | None:
    parameters = Parameters(**{"pause": 0.0, **given})
    decision = SPECON.decide(found, parameters, with_loads(found, state))
    assert all(allocation.share is None for allocation in decision.allocations.values())
    for order in decision.actions:
        assert order.kind is ActionKind.MIGRATE
        return order.job_id, order.to
    return None


@pytest.mark.parametrize(
    ("job_class", "efficiency", "best", "expected"),
    [
        ("PC", 0.05, 1.0, "WC"),
        ("WC", 0.05, 1.0, "CC"),
        ("CC", 0.05, 1.0, "CC"),
        ("CC", 0.10, 1.0, "PC"),
        ("PC", 0.00, 0.0, "WC"),
        ("WC", None, 1.0, "WC"),
    ],
)
def test_a_class_follows_the_growth_efficiency(job_class, efficiency, best, expected) -> None:
    assert transition(job_class, efficiency, best, 0.1) == expected


def test_a_job_that_has_never_grown_is_not_called_as_good_as_its_best() -> None:
    decision = SPECON.decide(cluster(h=[growing("a", 0.0)]), Parameters(), {})
    assert decision.allocations["a"].job_class == "WC"
    assert decision.allocations["a"].reason == "watching: growth efficiency 0 of loss"


def test_a_converged_job_next_to_a_progressing_one_goes_to_the_least_loaded_host() -> None:
    found = cluster(h=[job("a"), job("b"), job("c")], i=[job("d")], j=[])
    state = memory(h_a=PC, h_b=PC, h_c=CC, i_d=PC)
    assert migration(found, state) == ("c", "j")


def test_after_a_migration_the_next_one_waits() -> None:
    found = cluster(h=[job("a"), job("b"), job("c")], i=[])
    state = with_loads(found, memory(h_a=PC, h_b=CC, h_c=CC))
    first = SPECON.decide(found, Parameters(pause=0.0), state)
    assert len(first.actions) == 1
    assert SPECON.decide(found, Parameters(pause=0.0), first.state).actions == ()


def test_no_container_is_migrated_twice() -> None:
    found = cluster(h=[job("a"), job("c")], i=[])
    state = memory(h_a=PC, h_c=CC) | {"moved": {"c": {"source": "k", "at": 0}}}
    assert migration(found, state) == ("a", "i")


def test_a_migration_that_did_not_happen_may_be_ordered_again() -> None:
    found = cluster(h=[job("a"), job("c")], i=[])
    late = memory(h_a=PC, h_c=CC) | {"moved": {"c": {"source": "h", "at": NOW - 61 * MICRO}}}
    early = memory(h_a=PC, h_c=CC) | {"moved": {"c": {"source": "h", "at": NOW - 30 * MICRO}}}
    assert migration(found, late) == ("c", "i")
    assert migration(found, early) != ("c", "i")


def test_an_order_that_is_not_carried_out_is_repeated_ever_later() -> None:
    found = cluster(h=[job("a"), job("c")], i=[])
    state = memory(h_a=PC, h_c=CC)
    ordered = []
    for second in range(0, 2000, 10):
        now = replace(found, now=NOW + second * MICRO)
        decision = SPECON.decide(now, Parameters(pause=0.0, stale=86400.0), with_loads(now, state))
        ordered += [second for order in decision.actions if order.job_id == "c"]
        state = {**memory(h_a=PC, h_c=CC), "moved": decision.state["moved"]}
    assert ordered == [0, 60, 180, 420, 900, 1860]


def test_a_task_of_a_swarm_is_the_same_job_after_its_move() -> None:
    before, after = (f"train.1.{letter * 25}" for letter in "xy")
    state = memory(i_p=PC) | {"moved": {"train.1": {"source": "h", "at": 0}}}
    found = cluster("i", h=[job("a")], i=[job(after), job("p")], k=[])
    assert migration(found, state) == ("p", "k")
    assert lasting_name(job(before)) == lasting_name(job(after)) == "train.1"
    kept = {name: lasting_name(job(name)) for name in ("a.b", "train.1.x", "x." + "y" * 25)}
    assert all(name == short for name, short in kept.items())


def growing(name: str, rate: float) -> ContainerHistory:
    """A job whose loss has fallen by a rate (1/s) over the last two intervals."""
    made = job(name)
    made.use.samples = [(NOW - s * MICRO, 100.0 - s) for s in (20, 10, 0)]
    made.progress.metrics["loss"] = Series()
    times = [NOW - 15 * MICRO, NOW - 5 * MICRO]
    made.add_points("loss", (times, [1.0, 1.0 - 10 * rate], [None, None]))
    return made


def test_growth_by_gpu_second_is_not_compared_with_growth_by_cpu_time() -> None:
    """A job that begins to use a GPU begins anew; one on a GPU does not migrate for CPUs' sake."""
    slow = job("a")
    slow.note_devices([NOW], [ON_GPU])
    found = SPECON.decide(cluster(h=[slow, job("b")]), Parameters(), memory(h_a=CC, h_b=PC))
    assert [one.job_class for one in found.allocations.values()] == [PC, PC]
    assert found.state["best"]["h"][slow.run_id]["on_gpu"]
    assert migration(cluster(h=[job("a"), job("b")], i=[]), memory(h_a=CC, h_b=PC)) == ("a", "i")
    assert migration(cluster(h=[slow, job("b")], i=[]), memory(h_a=CC, h_b=PC)) == ("b", "i")


def test_a_job_that_is_to_leave_gets_no_limit_and_the_others_are_in_order() -> None:
    found = cluster(h=[growing("a", 0.05), growing("b", 0.04), growing("c", 0.0005)], i=[])
    state = with_loads(found, memory(h_a=PC, h_b=PC, h_c=CC))
    decision = SPECON.decide(found, Parameters(within="srtf", pause=0.0), state)
    (order,) = decision.actions
    assert (order.job_id, order.to) == ("c", "i")
    assert decision.allocations["c"].unlimited
    staying = replace(found.hosts["h"], jobs=found.hosts["h"].jobs[:2])
    alone = SRTF.decide(Cluster(NOW, "h", {"h": staying}, 10.0), SRTF.parameters(), {})
    for key in "ab":
        assert decision.allocations[key].share == alone.allocations[key].share
    later = SPECON.decide(found, Parameters(within="srtf"), decision.state)
    assert later.allocations["c"].unlimited  # until it has left


def test_on_one_host_the_job_nearest_to_its_end_goes_first() -> None:
    short, long = job("a", attained=50.0), job("b", attained=50.0)
    for one, epochs in ((short, 20), (long, 200)):
        one.label({"dltools.epochs": str(epochs)})
        one.progress.step, one.progress.epoch = 10, 10.0
    found = cluster(h=[long, short])
    decision = SPECON.decide(found, Parameters(within="srtf"), memory(h_a=PC, h_b=PC))
    assert (decision.allocations["a"].share or 0) > 0.9
    assert (decision.allocations["b"].share or 1) < 0.1
    assert decision.allocations["a"].job_class == PC
