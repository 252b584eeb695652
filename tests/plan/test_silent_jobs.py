"""Jobs that have reported nothing yet: they run alone first, then compete with the others."""

from typing import Any

import pytest
from helpers.observed_rows import at, container, feed, node, planner, point, sets, weights

from dltools.actions.plans import Op, Plan
from dltools.observations.table import Row
from dltools.plan.planner import Planner
from dltools.plan.realisation.options import Mode

FIRST, SECOND, LAST = 1024.0, 10.0, 2.0

SILENT = "libtorch in its processes, silent"
SAID = {"labels": '{"dltools.role": "training"}'}


def in_order(policy: str = "flowcon", state: Any = None) -> Planner:
    return planner(policy, Mode.PRIORITY, state)


def busy(now: float, name: str, used: float, start: float = 0.0, **more: Any) -> Row:
    """A silent training of two threads."""
    fields = {
        "thread_count": 2,
        "cpu_weight": FIRST,
        "started_at": at(start),
        "role": "training",
        "role_reason": SILENT,
    } | more
    return container(now, name, used, **fields)


def reasons(plan: Plan) -> dict[str, str]:
    return {action.container_name: action.reason for action in plan.actions}


def test_a_newcomer_runs_alone_beside_a_running_job() -> None:
    made = in_order("srtf")
    feed(made, node(30), busy(30, "old", 55.0), point(29, "old", 1.0))
    plan = feed(made, node(32), busy(32, "old", 59.0), busy(32, "new", 0.1, start=31.9))
    assert weights(plan) == {"old": SECOND}  # new has the first level from its start
    assert "new" not in reasons(plan)


def test_newcomers_go_one_by_one_in_order_of_arrival() -> None:
    made = in_order()
    feed(made, node(2), busy(2, "a", 2.0))
    later = [busy(4, "a", 4.0), busy(4, "b", 0.1, start=3.5), busy(4, "c", 0.1, start=3.9)]
    plan = feed(made, node(4), *later)
    assert weights(plan) == {"b": SECOND, "c": LAST}
    assert reasons(plan)["b"] == (
        f"training: {SILENT}; runs alone, so that it reports soon; 2 of 3 in the queue, "
        "until 00:00:10 at the latest"
    )


def test_after_its_cpu_seconds_a_silent_job_takes_turns_with_the_others() -> None:
    made = in_order()
    feed(made, node(2), busy(2, "a", 2.0))
    feed(made, node(4), busy(4, "a", 4.0), busy(4, "b", 0.1, start=3.5))
    # a has had its 10 CPU seconds: b runs alone now.
    plan = feed(made, node(8), busy(8, "a", 10.5), busy(8, "b", 0.2, start=3.5, cpu_weight=SECOND))
    assert weights(plan) == {"a": SECOND, "b": FIRST}
    first = []
    held = {"a": SECOND, "b": FIRST}
    for second in range(14, 40, 2):
        rows = [
            busy(second, "a", second + 2.5, cpu_weight=held["a"]),
            busy(second, "b", second, start=3.5, cpu_weight=held["b"]),
        ]
        held |= weights(feed(made, node(second), *rows))
        first.append(max(held, key=held.__getitem__))
    assert {"a", "b"} == set(first)
    assert "aaaa" not in "".join(first)
    assert "bbbb" not in "".join(first)


def test_rotate_gives_silent_jobs_turns_where_their_owners_say_that_they_train() -> None:
    made = planner("fair", Mode.ROTATE)
    plan = feed(made, node(2), busy(2, "a", 2.0, **SAID), busy(2, "b", 0.1, start=1.5, **SAID))
    assert {a.container_name: a.set["group"] for a in plan.actions} == {"a": 0, "b": 1}


def test_rotate_never_pauses_a_silent_job_that_seems_to_train() -> None:
    made = planner("fair", Mode.ROTATE)
    said = [("a", 30.0), ("b", 30.0)]
    rows = [busy(30, name, used, **SAID) for name, used in said]
    plan = feed(made, node(30), *rows, busy(30, "seems", 5.0))
    assert {a.container_name: a.op for a in plan.actions} == {"a": Op.ROTATE, "b": Op.ROTATE}
    # Once it has explored, it has a third beside the two groups, which have two.
    rows = [busy(40, name, used + 10, **SAID) for name, used in said]
    plan = feed(made, node(40), *rows, busy(40, "seems", 15.0))
    found = {a.container_name: a for a in plan.actions}
    assert (found["seems"].op, found["seems"].set) == (Op.UPDATE, {"weight": 512.0})
    assert "never paused" in found["seems"].reason
    assert {found[name].op for name in "ab"} == {Op.ROTATE}
    # Its first report makes it one of them.
    rows = [busy(42, name, used + 12, **SAID) for name, used in said]
    plan = feed(made, node(42), *rows, busy(42, "seems", 16.0), point(41, "seems", 1.0))
    assert {a.set["group"] for a in plan.actions} == {0, 1, 2}


@pytest.mark.parametrize(
    "more",
    [
        *({"role": role} for role in (None, "other", "interactive", "server", "gardening")),
        {"labels": '{"dltools.role": "other"}'},
    ],
)
@pytest.mark.parametrize("mode", [None, Mode.PRIORITY, Mode.ROTATE])
def test_a_busy_container_that_is_no_training_is_left_alone(more, mode) -> None:
    made = planner("fair", mode)
    feed(made, node(2), busy(2, "a", 2.0), busy(2, "b", 2.0, **more))
    later = [busy(14, "a", 14.0), busy(14, "b", 14.0, **more), busy(14, "new", 0.1, start=13.5)]
    assert "b" not in sets(feed(made, node(14), *later))


@pytest.mark.parametrize("policy", ["noop", "dqoes", "specon"])
def test_a_policy_that_gives_no_shares_orders_no_silent_job(policy) -> None:
    plan = feed(in_order(policy), node(2), busy(2, "a", 2.0), busy(2, "b", 0.1, start=1.5))
    assert plan.actions == ()


@pytest.mark.parametrize("label", ["dltools.protect", "dltools.qoe"])
def test_protected_and_serving_containers_are_left_alone(label) -> None:
    b = busy(2, "b", 0.1, start=1.5, labels=f'{{"{label}": "1"}}')
    assert feed(in_order(), node(2), busy(2, "a", 2.0), b).actions == ()


def test_a_container_that_uses_no_cpu_is_left_alone() -> None:
    made = in_order()
    feed(made, node(30), busy(30, "a", 55.0), busy(30, "idle", 0.5), point(29, "a", 1.0))
    plan = feed(made, node(40), busy(40, "a", 75.0), busy(40, "idle", 0.5), point(39, "a", 0.9))
    assert weights(plan) == {}


@pytest.mark.parametrize(("wanted", "planned"), [(1.9, "a b"), (0.1, "a"), (float("nan"), "a")])
def test_one_that_others_keep_from_the_cpus_competes(wanted, planned) -> None:
    # b had a tenth of a CPU in the 100 seconds before anybody looked: its demand shows why.
    made, starved = in_order(), busy(100, "b", 10.0, start=0.0, demand_cores=wanted)
    plan = feed(made, node(100), busy(100, "a", 3.0, start=98.0), starved)
    assert set(weights(plan)) | {"a"} == set(planned.split())


def test_an_idle_container_that_begins_to_work_competes() -> None:
    made = in_order("srtf")
    feed(made, node(30), busy(30, "a", 55.0), busy(30, "b", 0.5), point(29, "a", 1.0))
    feed(made, node(40), busy(40, "a", 60.0), busy(40, "b", 15.5), point(39, "a", 0.9))
    plan = feed(made, node(46), busy(46, "a", 62.0), busy(46, "b", 25.0), point(45, "a", 0.8))
    assert len(weights(plan)) == 1


def test_a_job_that_waits_is_not_taken_for_idle() -> None:
    made = in_order()
    feed(made, node(2), busy(2, "a", 2.0))
    feed(made, node(4), busy(4, "a", 4.0), busy(4, "b", 0.1, start=3.5))
    for second in (6, 8, 10):
        b = busy(second, "b", 0.1, start=3.5, cpu_weight=SECOND)
        plan = feed(made, node(second), busy(second, "a", 4.0 + second / 2), b)
        assert weights(plan) == {"a": SECOND, "b": FIRST}  # it has had too little: its turn


def test_a_silent_job_is_remembered_over_a_cut() -> None:
    rows = [
        [node(2), busy(2, "a", 2.0)],
        [node(4), busy(4, "a", 4.0), busy(4, "b", 0.1, start=3.5)],
        [node(8), busy(8, "a", 10.5), busy(8, "b", 0.2, start=3.5, cpu_weight=SECOND)],
        [node(10), busy(10, "a", 10.6, cpu_weight=SECOND), busy(10, "b", 4.0, start=3.5)],
    ]
    whole, saved = in_order(), None
    for sample in rows:
        plan, part = feed(whole, *sample), feed(in_order(state=saved), *sample)
        saved = part.state
    assert part == plan


def test_the_last_of_silent_jobs_has_the_first_level_when_the_others_have_exited() -> None:
    made = planner("srtf")
    feed(made, node(2), busy(2, "a", 2.0))
    both = feed(made, node(4), busy(4, "a", 4.0), busy(4, "b", 0.1, start=3.5))
    assert (weights(both), both.params["realize"]) == ({"b": SECOND}, "priority")
    plan = feed(made, node(6), busy(6, "b", 0.2, start=3.5, cpu_weight=SECOND))
    assert weights(plan) == {"b": FIRST}
    plan = feed(made, node(8), busy(8, "b", 4.2, start=3.5))
    assert weights(plan) == {}


@pytest.mark.parametrize("weight", [SECOND, 10.24])  # as the two cgroup versions show it
def test_a_job_that_waits_is_left_as_it_is_until_its_place_changes(weight) -> None:
    made = in_order()
    feed(made, node(2), busy(2, "a", 1.0), busy(2, "b", 1.0))
    plan = feed(made, node(4), busy(4, "a", 4.0), busy(4, "b", 2.5, cpu_weight=weight))
    assert weights(plan) == {}
    plan = feed(made, node(6), busy(6, "a", 8.0), busy(6, "b", 4.2, cpu_weight=weight))
    assert weights(plan) == {}
