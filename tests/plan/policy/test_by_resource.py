"""Jobs on CPUs, and jobs that share GPUs, are shares of their own."""

from dataclasses import replace
from typing import Any

import pytest
from helpers.examples import examples
from helpers.histories import history
from helpers.observed_rows import container, decisions_of, gpu, node, planner_of, point
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.times import MICRO
from dltools.observations.host_samples import DeviceUse
from dltools.observations.table import Row
from dltools.plan.policy import registry
from dltools.plan.policy.by_resource import decide, sharing_devices
from dltools.plan.policy.interface import Allocation, Cluster, HostState, IntervalChange
from dltools.plan.realisation.options import Mode
from dltools.plan.signals.container_history import ContainerHistory

BY_EFFORT = ("flowcon", "srtf", "las", "slaq", "tradl")
NOW = 60 * MICRO


def job(name: str, *gpus: str, slope: float = 0.1, share: float = 0.9) -> ContainerHistory:
    """A job of half a CPU that reports a falling loss each second for a minute."""
    made = history({}, samples=[(t, t / 2) for t in range(61)], name=name)
    made.use.threads = 4
    for t in range(61) if gpus else ():
        made.note_devices([t * MICRO], [{one: DeviceUse(share) for one in gpus}])
    times = [t * MICRO for t in range(1, 61)]
    values = [1 / (1 + slope * t) for t in range(1, 61)]
    made.add_points("loss", (times, values, [None] * 60), curves=True)
    return made


def decided(policy: str, *jobs: ContainerHistory, state: Any = None) -> Any:
    found = registry.get(policy, [])
    host = HostState("h", 8.0, tuple(sorted(jobs, key=lambda one: one.name)), sampled_at=NOW)
    return decide(found, Cluster(NOW, "h", {"h": host}, 20.0), found.parameters(), state or {})


@pytest.mark.parametrize("policy", BY_EFFORT)
@examples(25)
@given(shares=st.lists(st.floats(0.05, 1.0), max_size=3))
def test_jobs_on_gpus_change_nothing_for_those_on_cpus(policy, shares) -> None:
    on_cpus = [job("a", slope=0.1), job("b", slope=0.5), job("c", slope=0.02)]
    on_gpus = [job(f"g{n}", "GPU-1", share=share) for n, share in enumerate(shares)]
    alone, beside = decided(policy, *on_cpus), decided(policy, *on_cpus, *on_gpus)
    for one in on_cpus:
        assert beside.allocations[one.id] == alone.allocations[one.id]
    assert set(beside.allocations) == {one.id for one in (*on_cpus, *on_gpus)}


@pytest.mark.parametrize("policy", BY_EFFORT)
def test_jobs_on_different_gpus_have_one_each(policy) -> None:
    found = decided(policy, job("a", "GPU-1"), job("b", "GPU-2", slope=0.5))
    assert [one.share for one in found.allocations.values()] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("policy", BY_EFFORT)
def test_reasons_name_the_unit(policy) -> None:
    found = decided(policy, job("a"), job("g", "GPU-1"), job("h", "GPU-1", slope=0.5))
    if policy == "tradl":
        return  # without a target it has nothing to count
    allocations = found.allocations.items()
    reasons = {key.rstrip("c"): f"{one.reason} {one.signal}" for key, one in allocations}
    assert "GPU s" not in reasons["a"]
    assert "GPU s" in reasons["g"]
    assert "CPU s" not in reasons["g"]


def test_flowcon_counts_growth_per_gpu_second() -> None:
    """Losses fall alike, one with half of the GPU's time: its efficiency is twice the other's."""
    rows: list[Row] = []
    for number in range(4):
        now = 30.0 * number
        rows.append(node(now))
        for name, share in (("whole", 0.8), ("half", 0.4)):
            rows += [container(now, name, now), gpu(now, name, 1, share)]
            if number:
                rows.append(point(now - 1, name, 1.0 - number / 10))
    rows.sort(key=lambda row: row["time"])
    found = decisions_of(planner_of(rows, registry.get("flowcon", []), Mode.WEIGHT))
    # P = 0.1 / 0.9 of the peak in 30 s; G = P / 0.8 and P / 0.4: a third and two thirds.
    assert "growth efficiency 0.00463 of loss per GPU second" in found["whole"].reason
    assert "growth efficiency 0.00926 of loss per GPU second" in found["half"].reason


def test_a_policy_remembers_jobs_of_both_kinds() -> None:
    """FlowCon remembers since when a growth has been unknown, TRADL which models it delivered."""
    new, met = job("a"), {"dltools.metric": "loss", "dltools.target": "0.5"}
    new.progress.metrics["loss"].times, new.progress.metrics["loss"].values = [NOW], [1.0]
    other = job("g", "GPU-1")
    other.progress.metrics["loss"].times, other.progress.metrics["loss"].values = [NOW], [1.0]
    assert set(decided("flowcon", new, other).state["h"]) == {new.run_id, other.run_id}
    done = [job("a"), job("g", "GPU-1")]
    for one in done:
        one.label(met)
        one.progress.met_first = NOW
    found = decided("tradl", *done)
    assert len(found.actions) == 2
    assert found.state == {"h": {one.run_id: NOW for one in done}}
    assert decided("tradl", *done, state=found.state).actions == ()


def test_rounds_get_rarer_only_where_all_have_settled() -> None:
    flat = job("a")
    flat.progress.metrics["loss"].values = [1.0] * 60
    found = registry.get("flowcon", [])
    host = HostState("h", 8.0, (flat, job("g", "GPU-1", share=0.1)), sampled_at=NOW)
    host = replace(host, previous={one.id: Allocation(1.0, "CL", "") for one in host.jobs})
    cluster = Cluster(NOW, "h", {"h": host}, 20.0)
    changes = {}
    for value in (0.0, 1.0):  # what the job on the GPU has grown by
        host.jobs[1].progress.metrics["loss"].values = [1.0 - value * t / 60 for t in range(60)]
        changes[value] = decide(found, cluster, found.parameters(), {}).interval_change
    assert changes == {0.0: IntervalChange.DOUBLE, 1.0: IntervalChange.KEEP}


def test_jobs_share_gpus_directly_or_through_others() -> None:
    held = {"a": ("1",), "b": ("2",), "c": (), "d": ("1", "2"), "e": ("3",), "f": ("3",)}
    groups = sharing_devices(job(name, *gpus) for name, gpus in held.items())
    assert [sorted(one.name for one in group) for group in groups] == [["a", "b", "d"], ["e", "f"]]


def test_two_members_on_one_gpu_are_added_up() -> None:
    rows: list[Row] = []
    for now in (0.0, 10.0):
        rows.append(node(now))
        for name, memory in (("m-0", 3), ("m-1", None if now else 4)):
            member = {"job": "pair", "job_containers": 2}
            used = gpu(now, name, 1, 0.4, gpu_memory_used_bytes=memory)
            rows += [container(now, name, now, **member), used]
        rows.append(point(now, "m-0", 1.0))
    made = planner_of(rows, registry.get("las", []), Mode.WEIGHT)
    made.complete()
    (host,) = made.hosts.by_name.values()
    (both,) = host.history.containers.values()
    assert both.id == "job:pair"
    assert both.use.effort == pytest.approx(8.0)
    assert both.use.gpu_use.gpus["GPU-1"].memory is None
