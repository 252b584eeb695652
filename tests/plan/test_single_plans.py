"""Single plans: how long they are good for, and what they set where nobody knows that."""

from typing import Any

import pytest
from helpers import observed_rows
from helpers.observed_rows import SHARING, container, having_read, job_id, node, point, reread

from dltools.actions.plans import Op, Plan
from dltools.observations.table import Row
from dltools.plan.planner import Planner
from dltools.plan.realisation.options import Mode

JOBS = ("a", "b", "c", "d")


def rows_from(begin: float, seconds: float) -> list[Row]:
    """Four trainings of two threads on two CPUs, which learn at different speeds."""
    rows = []
    for step in range(int(seconds / 2)):
        now = begin + 2 * step
        rows.append(node(now))
        for number, name in enumerate(JOBS, 1):
            rows.append(container(now, name, 20 + now / 2, thread_count=2, cpu_weight=1024.0))
            rows.append(point(now - 0.1, name, 3 / (1 + now / 10) ** number))
    return rows


def planner(policy: str, mode: Mode | None, rows: list[Row], state: Any = None) -> Planner:
    return having_read(observed_rows.planner(policy, mode, state), rows)


def single(made: Planner) -> Plan:
    return reread(made.plan({}, is_single=True))


def weights(plan: Plan) -> list[float]:
    """The weights of all jobs; those without an action have what they had."""
    found = {action.container_name: action.set.get("weight") for action in plan.actions}
    return sorted(found.get(name, 1024.0) for name in JOBS)


@pytest.mark.parametrize("mode", [None, Mode.PRIORITY, Mode.WEIGHT])
@pytest.mark.parametrize("policy", SHARING)
def test_what_may_stay_for_good_holds_nobody_far_back(policy, mode) -> None:
    plan = single(planner(policy, mode, rows_from(0, 120)))
    assert plan.lease_s is None
    found = weights(plan)
    assert max(found) <= 4 * min(found)
    assert all(action.op is Op.UPDATE for action in plan.actions)


def test_priorities_that_may_stay_for_good_say_so() -> None:
    made = planner("srtf", Mode.PRIORITY, rows_from(0, 120))
    assert weights(single(made)) == [256, 256, 512, 1024]
    explained = made.explain(is_single=True)
    assert "no next plan is known, and what is set may stay" in explained.lines[-1]
    assert weights(made.plan({})) == [2, 2, 10, 1024]  # of a stream


@pytest.mark.parametrize(("apart_s", "lease_s"), [(60.0, 180.0), (2.0, 10.0), (600.0, 1800.0)])
def test_a_plan_is_good_for_three_intervals_between_runs(apart_s, lease_s) -> None:
    """And may hold jobs far back, as the next run or the lease ends it."""
    first = single(planner("srtf", None, rows_from(0, 120)))
    second = single(planner("srtf", None, rows_from(118 + apart_s, 2), first.state))
    assert second.lease_s == lease_s
    assert min(weights(second)) < 256


def test_a_run_that_reads_nothing_new_knows_no_interval() -> None:
    first = single(planner("srtf", None, rows_from(0, 120)))
    assert single(planner("srtf", None, rows_from(0, 120), first.state)).lease_s is None


def paces(host: dict[str, Any]) -> list[dict[str, Any]]:
    progresses = [one["progress"] for one in host["history"]["containers"].values()]
    return [progress["pace"] for progress in progresses if "pace" in progress]


def test_jobs_that_were_not_held_far_back_show_nothing_of_contention() -> None:
    """The first was not alone: that it lost time says nothing against priorities."""
    (host,) = single(planner("srtf", None, rows_from(0, 120))).state["hosts"].values()
    assert {pace.get("place") for pace in paces(host)} == {None}
    streaming = planner("srtf", None, rows_from(0, 120)).plan({})
    (host,) = streaming.state["hosts"].values()
    assert {pace.get("place") for pace in paces(host)} - {None}


def test_a_plan_names_all_that_it_decides_on() -> None:
    made = planner("srtf", None, rows_from(0, 120))
    plan = single(made)
    assert plan.covers == tuple(sorted(map(job_id, JOBS)))
    assert len(plan.actions) < len(plan.covers)  # those too that stay as they are
    assert reread(made.plan({})).covers == plan.covers
