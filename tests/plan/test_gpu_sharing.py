"""Jobs that share GPUs: left to share, or in turns on each GPU where that is asked for."""

from functools import partial
from typing import Any

import pytest
from helpers.examples import some_of
from helpers.observed_rows import (
    SHARING,
    by_name,
    container,
    decisions_of,
    feed,
    gpu,
    having_read,
    node,
    plan_in_two,
    planner,
    point,
)

from dltools.actions.plans import Op, Plan
from dltools.labels import ROLE
from dltools.observations.host_samples import DeviceUse
from dltools.observations.table import Row
from dltools.plan.hosts.gpu_shares import turns_on_gpus
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.interface import Allocation
from dltools.plan.realisation.mode import Mode
from dltools.plan.signals.container_history import ContainerHistory

GIB = 1 << 30


def on_gpu(
    now: float,
    name: str,
    number: int,
    ratio: float | None = 0.5,
    *,
    held: int | None = 10,
    limit: int | None = 80,
    **more: Any,
) -> list[Row]:
    """A container that uses a CPU and a GPU, of whose GiB it holds some."""
    fields = {"thread_count": 30, "demand_cores": 1.0, "cpu_limit_cores": 64.0} | more
    sizes = {"gpu_memory_used_bytes": held, "gpu_memory_limit_bytes": limit}
    memory = {column: size and size * GIB for column, size in sizes.items()}
    return [container(now, name, now, **fields), gpu(now, name, number, ratio, **memory)]


def host(now: float, cpus: float = 64.0) -> Row:
    return {**node(now, cpus), "cpu_seconds": cpus * now / 8}


def reports(now: float, name: str, **more: Any) -> Row:
    return point(now, name, 1 / (1 + now), step=round(10 * now), **more)


def trained(now: float, name: str, number: int, ratio: float = 0.5, **how: Any) -> list[Row]:
    """A training on a GPU, which reports."""
    return [*on_gpu(now, name, number, ratio, **how), reports(now, name)]


def server(**how: Any) -> list[Row]:
    """Two trainings on each of eight GPUs, for a minute."""
    rows = []
    for now in range(0, 60, 2):
        rows.append(host(now))
        for number in range(8):
            for name in (f"a{number}", f"b{number}"):
                rows += trained(now, name, number, **how)
    return rows


def plan_of(rows: list[Row], policy: str = "fair", mode: Mode | None = None, **how: Any) -> Plan:
    return having_read(planner(policy, mode, **how), rows).plan({})


def turns(plan: Plan) -> dict[str, tuple[str | None, int]]:
    return {
        name: (one.set.get("queue"), one.set["group"])
        for name, one in by_name(plan).items()
        if one.op is Op.ROTATE
    }


@pytest.mark.parametrize("policy", some_of(SHARING, 1))
def test_two_jobs_on_each_gpu_take_turns_there_where_that_is_asked_for(policy) -> None:
    found = turns(plan_of(server(), policy, Mode.ROTATE))
    assert len(found) == 16
    for number in range(8):
        pair = sorted(found[name] for name in (f"a{number}", f"b{number}"))
        assert pair == [(f"GPU-{number}", 0), (f"GPU-{number}", 1)]


@pytest.mark.parametrize("policy", some_of(SHARING, 1))
@pytest.mark.parametrize("mode", [None, Mode.PRIORITY, Mode.WEIGHT])
def test_two_jobs_on_each_gpu_share_it_otherwise(policy, mode) -> None:
    made, rows = planner(policy, mode), server()
    for now in range(0, 60, 2):
        plan = feed(made, *(row for row in rows if row["time"].second == now))
        assert not [one for one in plan.actions if now > 2 or one.op is Op.ROTATE]


def test_turns_are_in_proportion_to_shares_within_each_queue() -> None:
    host = HostHistory("h", 4.0, sampled_at=0)
    for name, share, gpu_ in zip("abcd", (0.1, 0.3, 0.9, 1.0), ("1", "1", "2", "2"), strict=True):
        job = ContainerHistory(name, name, 0)
        job.label({ROLE: "training"})
        job.note_devices([0], [{f"GPU-{gpu_}": DeviceUse(0.5, 1, 9)}])
        job.add_points("loss", ([0], [1.0], [None]))
        host.containers[name] = job
        is_new = name == "d"
        host.decision.allocations[name] = Allocation(
            share, "-", "", unlimited=is_new, rank=int(name == "c")
        )
    assert turns_on_gpus(host, 8.0).turns == {
        "b": {"group": 0, "turn_s": 12.0, "queue": "GPU-1"},
        "a": {"group": 1, "turn_s": 4.0, "queue": "GPU-1"},
        "d": {"group": 0, "turn_s": 8.0, "queue": "GPU-2"},
        "c": {"group": 1, "turn_s": 8.0, "queue": "GPU-2"},
    }


# Who takes no turns


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"held": None}, "shares with b0: the GPU memory of a0 is unknown"),
        ({"limit": None}, "shares with b0: the memory of GPU-0 is unknown"),
        ({"held": 41}, "shares with b0: 82 GiB would stay in the 80 GiB of GPU-0"),
    ],
)
def test_jobs_share_where_their_memory_is_unknown_or_too_large(how, reason) -> None:
    made = having_read(planner("fair", Mode.ROTATE), server(**how))
    assert turns(made.plan({})) == {}
    assert reason in decisions_of(made)["a0"].reason


def mixed(now: float) -> list[Row]:
    """On one GPU: two trainings, a server, a silent program that may train, a member of a job that
    has others elsewhere, and a protected training."""
    elsewhere = {"job": "far", "job_containers": 2}
    protected = {"labels": '{"dltools.protect": "1"}'}
    silent = {"role": "training", "role_reason": "libtorch"}
    return [
        host(now),
        *trained(now, "a", 1),
        *trained(now, "b", 1),
        *on_gpu(now, "serves", 1),
        *on_gpu(now, "silent", 1, **silent),
        *trained(now, "member", 1, **elsewhere),
        *trained(now, "kept", 1, **protected),
        point(now, "serves", 0.1, "latency_seconds"),
    ]


@pytest.mark.parametrize("policy", some_of(SHARING, 1))
def test_only_who_may_be_paused_takes_turns(policy) -> None:
    rows = [row for now in range(0, 40, 2) for row in mixed(now)]
    assert turns(plan_of(rows, policy, Mode.ROTATE)).keys() == {"a", "b"}


def test_the_memory_of_all_on_the_gpu_counts() -> None:
    rows = [row for now in range(0, 40, 2) for row in mixed(now)]
    for row in rows:
        if row["kind"] == "gpu" and row["container_name"] == "serves":
            row["gpu_memory_used_bytes"] = 40 * GIB
    assert turns(plan_of(rows, mode=Mode.ROTATE)) == {}


def test_members_of_a_job_have_one_turn() -> None:
    rows: list[Row] = []
    for now in range(0, 40, 2):
        pair = {"job": "pair", "job_containers": 2}
        rows += [
            host(now),
            *trained(now, "m-0", 1, **pair),
            *on_gpu(now, "m-1", 2, **pair),
            *trained(now, "x", 1),
            *trained(now, "y", 2),
            *trained(now, "z", 3),
        ]
    found = turns(plan_of(rows, mode=Mode.ROTATE))
    assert found["m-0"] == found["m-1"]
    assert {queue for queue, _ in found.values()} == {"GPU-1"}  # the pair joins both GPUs
    assert sorted({group for _, group in found.values()}) == [0, 1, 2]
    assert "z" not in found


def test_who_has_left_its_gpu_idle_takes_no_turn_there() -> None:
    rows = []
    for now in range(0, 400, 4):
        rows += [host(now), *trained(now, "a", 1), *trained(now, "b", 1, 0.5 * (now < 40))]
    assert turns(plan_of(rows[: len(rows) // 2], mode=Mode.ROTATE)).keys() == {"a", "b"}
    assert turns(plan_of(rows, mode=Mode.ROTATE)) == {}


def test_feeders_that_are_as_all_others_have_no_queues_of_their_own() -> None:
    found = turns(plan_of(server(), mode=Mode.ROTATE, feeders="equal"))
    assert all(queue is None for queue, _ in found.values())


def test_turns_on_cpus_and_on_gpus_go_on_beside_each_other() -> None:
    rows: list[Row] = []
    for now in range(0, 60, 2):
        rows += [
            {**node(now, 4.0), "cpu_seconds": 4.0 * now},
            *trained(now, "a", 1),
            *trained(now, "b", 1),
        ]
        for name in ("x", "y"):
            rows.append(container(now, name, float(now), thread_count=4, demand_cores=4.0))
            rows.append(reports(now, name))
    found = {name: queue for name, (queue, _) in turns(plan_of(rows, mode=Mode.ROTATE)).items()}
    assert found == {"a": "GPU-1", "b": "GPU-1", "x": None, "y": None}


@pytest.mark.parametrize("cut", range(0, 1470, 163))
@pytest.mark.slow
def test_a_state_between_any_two_rows_gives_the_same_plan(cut) -> None:
    rows = server()
    wanted = plan_of(rows, mode=Mode.ROTATE)
    found = plan_in_two(partial(planner, "fair", Mode.ROTATE), rows, cut)
    assert (found.actions, found.state) == (wanted.actions, wanted.state)
