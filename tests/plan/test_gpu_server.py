"""A server with GPUs: trainings that leave its CPUs idle are left alone, whatever their threads."""

import re
from functools import partial
from itertools import chain, groupby
from typing import Any

import pytest
from helpers.examples import repeated, some_of
from helpers.observed_rows import (
    SHARING,
    container,
    gpu,
    having_read,
    node,
    plan_in_two,
    planner,
    point,
    weights,
)

from dltools.actions.plans import Op, Plan
from dltools.observations.table import Row
from dltools.plan.planner import Planner
from dltools.plan.realisation.feeders import FIRST_BESIDE_TURNS, FIRST_WEIGHT, NEAR_WEIGHT
from dltools.plan.realisation.options import Mode

JOBS = [f"job{number}" for number in range(8)]


def host(seconds: float, busy: float, cpus: float = 64.0) -> Row:
    return {**node(seconds, cpus), "cpu_seconds": busy}


def training(seconds: float, name: str, used: float, threads: int, **more: Any) -> Row:
    fields = {"thread_count": threads, "cpu_limit_cores": 64.0} | more
    return container(seconds, name, used, **fields)


def plans(made: Planner, samples: list[list[Row]], every: int = 1) -> list[Plan]:
    """Plan after the first sample, and then after each `every` samples."""
    found = []
    for first in range(0, len(samples), every):
        having_read(made, chain(*samples[max(0, first + 1 - every) : first + 1])).complete()
        found.append(made.plan({}, state=False))
    return found


def server(
    threads: int, *, demand: float | None, gpus: bool, jobs: list[str] = JOBS
) -> list[list[Row]]:
    """Eight trainings that each use 2 of 64 CPUs for three minutes, or five. From 100 to 170 s the
    first four validate: they report a third as often."""
    samples = []
    for step in range(repeated(100, 151)):
        now = 2.0 * step
        rows: list[Row] = [host(now, 2.0 * len(jobs) * now)]
        for number, name in enumerate(jobs):
            more = {} if demand is None else {"demand_cores": demand}
            rows.append(training(now, name, 2.0 * now, threads, **more))
            if gpus:
                rows.append(gpu(now, name, number % 8))
            is_slow = 100 <= now <= 170 and number < 4
            if step % (6 if is_slow else 2) == 0:
                rows.append(point(now - 0.5, name, 2.0 / (1 + step + number), step=step))
        samples.append(rows)
    return samples


@pytest.mark.parametrize(("gpus", "threads"), some_of([(True, 60), (False, 96), (False, 128)], 2))
@pytest.mark.parametrize("demand", some_of([11.0, None, 2.0], 2))
@pytest.mark.parametrize("policy", some_of(["flowcon", "srtf", "fair"], 1))
def test_no_training_waits_for_cpus_that_are_idle(policy, threads, demand, gpus) -> None:
    """A demand of 11 CPUs each is one of bursts: together they would be more than there are."""
    found = plans(planner(policy), server(threads, demand=demand, gpus=gpus), every=3)
    assert [plan.actions for plan in found[1:]] == [()] * (len(found) - 1)
    if not gpus:
        assert found[-1].params["realize_why"] == "CPUs 25 % busy: nothing to gain"


@pytest.mark.parametrize("policy", some_of(SHARING, 1))
@pytest.mark.parametrize("mode", [None, Mode.PRIORITY, Mode.ROTATE])
def test_two_jobs_on_each_gpu_are_left_to_share_it(policy, mode) -> None:
    jobs = [f"{letter}{number}" for letter in "ab" for number in range(8)]
    samples = server(60, demand=1.0, gpus=True, jobs=jobs)[:60]
    found = plans(planner(policy, mode), samples, every=5)
    assert not any(plan.actions for plan in found[1:])


@pytest.mark.parametrize("mode", [Mode.PRIORITY, Mode.ROTATE, Mode.WEIGHT])
def test_nobody_waits_on_idle_cpus_either_where_a_mode_is_asked_for(mode) -> None:
    found = plans(planner("fair", mode), server(60, demand=None, gpus=False), every=3)
    assert not any(plan.actions for plan in found[1:])


def contested(
    feeders: int,
    *,
    cpus: float = 8.0,
    demand: float = 1.0,
    seconds: int = 40,
    wants: float | None = None,
    idle_from: int = 999,
) -> list[list[Row]]:
    """Jobs that feed GPUs beside three trainings that each want all CPUs, or as many as they want;
    nobody else uses any. From a sample on the GPUs are idle."""
    samples = []
    rest = cpus - feeders * demand / 2
    for step in range(seconds // 2):
        now = 2.0 * step
        rows: list[Row] = [host(now, cpus * now, cpus)]
        for number in range(feeders):
            name = f"gpu{number}"
            rows += [
                training(now, name, demand * now / 2, 30, demand_cores=demand),
                gpu(now, name, number, 0.9 if step < idle_from else 0.0),
                point(now, name, 1 / (1 + step), step=step),
            ]
        for name in ("x", "y", "z"):
            rows += [
                training(now, name, rest * now / 3, 8, demand_cores=wants or cpus),
                point(now, name, 1 / (1 + step), step=step),
            ]
        samples.append(rows)
    return samples


def test_a_gpu_feeder_goes_before_jobs_on_cpus_where_these_are_contested() -> None:
    """Two feeders want one CPU each, and the first training six of eight."""
    found = weights(plans(planner("fair"), contested(2, wants=6.0))[-1])
    assert (found["gpu0"], found["gpu1"]) == (FIRST_WEIGHT, FIRST_WEIGHT)
    assert sorted(found.get(name, 1024.0) for name in "xyz") == [2.0, 10.0, 1024.0]


def test_jobs_that_do_not_fit_beside_gpu_feeders_take_turns() -> None:
    """Weights keep the threads of the first job on one CPU there (measured): turns do not."""
    plan = plans(planner("fair"), contested(2))[-1]
    turns = {a.container_name: a.set["group"] for a in plan.actions if a.op is Op.ROTATE}
    assert sorted(turns) == ["x", "y", "z"]
    assert sorted(turns.values()) == [0, 1, 2]
    assert weights(plan)["gpu0"] == FIRST_BESIDE_TURNS
    assert plan.params["realize"] == "rotate"


def test_weights_that_are_asked_for_hold_nobody_back_who_does_not_fit_beside_feeders() -> None:
    found = weights(plans(planner("fair", Mode.PRIORITY), contested(2))[-1])
    assert found["gpu0"] == FIRST_WEIGHT
    assert {found.get(name, 1024.0) for name in "xyz"} == {1024.0}


def test_a_gpu_feeder_goes_before_jobs_of_one_thread_each() -> None:
    """An order of these wins nothing, but a feeder would have a fifth of a CPU beside them."""
    samples = contested(1, cpus=2.0, wants=1.0)
    for row in chain(*samples):
        if row.get("container_name") in ("x", "y", "z") and row["kind"] == "container":
            row["thread_count"] = 1
    plan = plans(planner("fair"), samples)[-1]
    assert weights(plan)["gpu0"] == FIRST_WEIGHT
    assert not {"x", "y", "z"} & weights(plan).keys()


def test_feeders_that_want_most_of_the_cpus_stay_near_to_the_others() -> None:
    assert weights(plans(planner("fair"), contested(2, demand=3.0))[-1])["gpu0"] == NEAR_WEIGHT


def test_a_single_plan_that_may_stay_keeps_within_a_factor_of_four() -> None:
    made = planner("fair")
    plans(made, contested(2))
    found = [a.set["weight"] for a in made.plan({}, is_single=True).actions if "weight" in a.set]
    assert found
    assert max([1024.0, *found]) <= 4 * min([1024.0, *found])


def test_feeders_are_as_all_others_where_that_is_asked_for() -> None:
    found = weights(plans(planner("fair", feeders="equal"), contested(2))[-1])
    assert found.get("gpu0", 1024.0) <= 1024.0


@pytest.mark.parametrize("mode", [Mode.ROTATE, Mode.QUOTA])
@pytest.mark.parametrize("policy", some_of(SHARING, 1))
def test_a_gpu_feeder_goes_first_in_every_mode_and_is_never_paused_or_capped(policy, mode) -> None:
    found = plans(planner(policy, mode), contested(2))
    given = [a for plan in found for a in plan.actions if a.container_name.startswith("gpu")]
    assert {value for a in given for name, value in a.set.items() if name != "weight"} <= {None}
    assert all(action.op is Op.UPDATE for action in given)
    wanted = FIRST_BESIDE_TURNS if mode is Mode.ROTATE else FIRST_WEIGHT
    assert {action.set["weight"] for action in given} == {wanted}


@pytest.mark.slow
def test_a_feeder_that_feeds_no_gpu_any_more_gets_its_weight_back_under_quotas() -> None:
    samples = contested(1, seconds=800, idle_from=10)
    for step, rows in enumerate(samples[10:], 10):
        rows[1]["cpu_weight"] = FIRST_WEIGHT if step < 300 else 1024.0
    found = plans(planner("fair", Mode.QUOTA), samples, every=5)
    given = [weights(plan)["gpu0"] for plan in found if "gpu0" in weights(plan)]
    assert given[-1] == 1024.0


@pytest.mark.slow
def test_who_has_not_used_its_gpu_for_five_minutes_stands_in_line() -> None:
    """A validation on the CPU for some minutes does not cost a job its place."""
    found = plans(planner("fair"), contested(1, seconds=800, idle_from=10), every=10)
    assert weights(found[15])["gpu0"] > NEAR_WEIGHT
    assert weights(found[30]).get("gpu0", 1024.0) <= 1024.0


def test_an_unknown_use_of_a_gpu_counts_as_use() -> None:
    samples = contested(1)
    for rows in samples:
        rows[2]["gpu_utilization_ratio"] = None
    assert weights(plans(planner("fair"), samples)[-1])["gpu0"] == FIRST_BESIDE_TURNS


@pytest.mark.parametrize("policy", some_of(SHARING, 1))
@pytest.mark.slow
def test_a_state_between_any_two_rows_of_a_gpu_server_gives_the_same_plan(policy) -> None:
    """One of the jobs on GPUs begins on the CPU, and one ends its use of the GPU."""
    rows = []
    for number, sample in enumerate(contested(2, seconds=16)):
        gpus = iter((number >= 2, number < 6))
        rows += [row for row in sample if row["kind"] != "gpu" or next(gpus)]
    wanted = having_read(planner(policy), rows).plan({})
    for cut in range(0, len(rows), 3):
        found = plan_in_two(partial(planner, policy), rows, cut)
        assert (found.actions, found.state) == (wanted.actions, wanted.state)


def fed(paces: list[tuple[float, float]], cpus: float = 16.0) -> list[list[Row]]:
    """A training that feeds a GPU with four CPUs, at so many steps a second for so many seconds: in
    the first of these alone, then beside six of four threads that want all of 16 CPUs."""
    samples, now, position = [], 0.0, 0.0
    for number, (seconds, pace) in enumerate(paces):
        until = now + seconds
        while now < until:
            others = [f"job{number}" for number in range(6)] if number else []
            rows: list[Row] = [host(now, (cpus if others else 4.0) * now, cpus)]
            rows += [
                training(now, "fed", 4.0 * now, 30, demand_cores=4.0, cpuset="0-15"),
                gpu(now, "fed", 0, 0.9),
                point(now, "fed", 1 / (1 + now), step=round(100 * position)),
            ]
            for name in others:
                rows.append(training(now, name, 2.0 * now, 4, demand_cores=4.0, cpuset="0-15"))
                rows.append(point(now, name, 1 / (1 + now), step=round(now)))
            samples.append(rows)
            now, position = now + 2.0, position + 2.0 * pace
    return samples


def left(found: list[Plan]) -> list[int]:
    """Return how many CPUs plans leave to feeders, one after the other."""
    whys = (str(plan.params.get("realize_why")) for plan in found)
    matches = (re.search(r"(\d+) CPUs are left", why) for why in whys)
    return [count for count, _ in groupby(int(one[1]) if one else 0 for one in matches)]


def test_jobs_leave_cpus_to_a_feeder_whose_pace_falls_beside_them() -> None:
    """It makes 0.8 of its steps: they leave the four that it uses, which do not suffice, then two
    more, which do."""
    found = plans(planner("srtf"), fed([(60, 1.0), (80, 0.8), (60, 0.9), (80, 1.0)]))
    assert left(found) == [0, 4, 6]
    given = {a.container_name: a.set.get("cpuset") for a in found[-1].actions}
    assert given == {**{f"job{number}": "0-9" for number in range(6)}, "fed": None}


def test_jobs_get_back_the_cpus_that_help_no_feeder() -> None:
    found = plans(planner("srtf"), fed([(60, 1.0), (180, 0.8), (600, 1.0)]), every=3)
    assert left(found) == [0, 4, 0]


def test_a_step_that_does_not_help_is_taken_back_alone() -> None:
    found = plans(planner("srtf"), fed([(60, 1.0), (80, 0.8), (300, 0.9)]), every=3)
    assert left(found) == [0, 4, 6, 4]


def test_a_validation_of_a_feeder_takes_no_cpus_from_others() -> None:
    paces = [(60, 1.0), *[(30, 0.0), (40, 1.0)] * 4]
    assert left(plans(planner("srtf"), fed(paces))) == [0]


def test_silent_jobs_alone_leave_cpus_to_a_feeder_too() -> None:
    samples = fed([(60, 1.0), (80, 0.8)])
    for rows in samples:
        rows[:] = [
            row
            for row in rows
            if row["kind"] != "progress" or not row["container_name"].startswith("job")
        ]
        for row in rows:
            if row["kind"] == "container" and row["container_name"].startswith("job"):
                row |= {"role": "training", "role_reason": "libtorch"}
    assert left(plans(planner("srtf"), samples)) == [0, 4]


def test_a_feeder_takes_no_cpu_of_few() -> None:
    """A whole one of two would be most of what others have."""
    found = contested(1, cpus=2.0, demand=0.3, wants=1.0, seconds=400)
    for step, rows in enumerate(found):
        rows[3]["step"] = 100 * step if step < 30 else 3000 + 50 * (step - 30)
    assert left(plans(planner("srtf"), found, every=5)) == [0]


def test_whole_cores_are_left_to_feeders() -> None:
    """Each core has two CPUs: five would leave a half, and so six are left."""
    samples = fed([(60, 1.0), (80, 0.8)])
    for rows in samples:
        rows[0]["cpu_siblings"] = "+".join(f"{number},{number + 8}" for number in range(8))
        for row in rows:
            if row.get("container_name") == "fed" and "demand_cores" in row:
                row["demand_cores"] = 5.0
    found = plans(planner("srtf"), samples)[-1]
    assert {a.set.get("cpuset") for a in found.actions} == {"0-4,8-12", None}
