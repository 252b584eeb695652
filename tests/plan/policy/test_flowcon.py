"""FlowCon worked by hand: G = P / R, beta = 1 + 1/n, and so 1/(beta n) = 1/(n + 1)."""

import math

import pytest
from helpers.observed_rows import at, container, decisions_of, node, planner_of, point

from dltools.observations.table import Row
from dltools.plan.policy.flowcon import limit, transition
from dltools.plan.realisation.options import Mode

ALPHA = 0.03


@pytest.mark.parametrize(
    ("before", "efficiency", "after"),
    [
        ("NL", 0.029, "WL"),
        ("WL", 0.029, "CL"),
        ("CL", 0.029, "CL"),
        ("NL", 0.03, "NL"),  # at alpha a job grows
        ("WL", 0.03, "NL"),
        ("CL", 0.03, "NL"),
        ("NL", None, "NL"),  # unknown changes nothing
    ],
)
def test_a_class_follows_the_growth_efficiency(before, efficiency, after) -> None:
    assert transition(before, efficiency, ALPHA) == after


@pytest.mark.parametrize(
    ("job_class", "efficiency", "total", "n", "share"),
    [
        ("WL", 0.02, 0.1, 3, None),  # keeps what it has
        ("CL", 0.0, 0.1, 3, 1 / 4),  # the floor: beta = 4/3, 1/(4/3 * 3)
        ("CL", 0.02, 0.1, 3, 1 / 4),  # 0.2 is under the floor
        ("CL", 0.029, 0.058, 3, 1 / 2),  # above it
        ("CL", 0.0, 0.1, 1, 1 / 2),
        ("NL", 0.03, 0.1, 3, 0.3),
        ("NL", 0.1, 0.1, 3, 1.0),
        ("NL", 0.001, 0.1, 3, 0.01),  # NL has no floor
        ("NL", None, 0.1, 3, None),
        ("NL", 0.0, 0.0, 3, None),  # S = 0 leaves limits
        ("CL", 0.0, 0.0, 3, None),
    ],
)
def test_a_share_is_a_part_of_growth_with_a_floor(job_class, efficiency, total, n, share) -> None:
    found = limit(job_class, efficiency, total, n)
    assert found == (None if share is None else pytest.approx(share, rel=1e-12))


def rows(
    losses: dict[str, list[float]], cpu: dict[str, float], cpus: float = 2.0, every: float = 10.0
) -> list[Row]:
    """A sample each `every` seconds from 0 on; before each but the first a loss, 1 s earlier.

    `cpu` is the cores that each job uses. All limits are off.
    """
    made = []
    for number in range(1 + max(map(len, losses.values()))):
        now = number * every
        made.append(node(now, cpus))
        for name, values in losses.items():
            if number > len(values):
                continue  # it has left
            made.append(container(now, name, cpu[name] * now, cpu_limit_cores=cpus))
            if number:
                made.append(point(now - 1, name, values[number - 1]))
    return made


def test_first_round_with_two_windows() -> None:
    """Losses 1.0 then 0.6 and 1.0 then 0.9 on 2 CPUs, itval 10, one core each: R = 0.5.

    fast: P = 0.4/10 = 0.04, G = 0.08. slow: P = 0.1/10 = 0.01, G = 0.02 < alpha: NL to WL.
    S = 0.10: fast gets 0.8 of 2 CPUs = 1.6; slow keeps its limit.
    """
    made = rows({"fast": [1.0, 0.6], "slow": [1.0, 0.9]}, {"fast": 1, "slow": 1})
    found = decisions_of(planner_of(made, itval=10))
    assert found["fast"].job_class == "NL"
    assert found["fast"].setting == {"cpus": 1.6}
    assert found["slow"].job_class == "WL"
    assert found["slow"].setting is None
    assert "0.08 of loss >= alpha 0.03" in found["fast"].reason
    assert "(NL to WL)" in found["slow"].reason


def test_flat_job_completes_with_the_floor() -> None:
    """Third round: flat is NL, WL, CL. n = 2: floor 1/3 of 4 CPUs = 1.333.

    fast: 0.6 to 0.3 of peak 1: P = 0.03, R = 1/4, G = 0.12 = S: all 4 CPUs, so no limit.
    """
    losses = {"fast": [1.0, 0.6, 0.3], "flat": [0.5, 0.5, 0.5]}
    found = decisions_of(planner_of(rows(losses, {"fast": 1, "flat": 1}, cpus=4.0), itval=10))
    assert found["flat"].job_class == "CL"
    assert found["flat"].setting == {"cpus": 1.333}
    assert found["fast"].job_class == "NL"
    assert found["fast"].setting is None  # it has no limit already


def test_shares_under_one_cpu_are_not_truncated() -> None:
    """Three flat ones and a fast one on 2 CPUs, n = 4: floor 1/5 of 2 = 0.4 each."""
    losses = {"fast": [1.0, 0.7, 0.4]} | {f"flat{k}": [1.0, 1.0, 1.0] for k in range(3)}
    found = decisions_of(planner_of(rows(losses, dict.fromkeys(losses, 0.5)), itval=10))
    assert [found[f"flat{k}"].setting for k in range(3)] == [{"cpus": 0.4}] * 3


@pytest.mark.parametrize("mode", [Mode.QUOTA, Mode.PRIORITY])
def test_all_completing_takes_limits_off_and_doubles_the_interval(mode) -> None:
    """Flat from the start: unknown at 0 and 10, WL at 20, CL at 30, where limits go off. In a queue
    they take turns at the first level."""
    made = rows({"a": [0.5] * 3, "b": [0.5] * 3}, {"a": 1, "b": 1})
    for row in made:
        if row["kind"] == "container":
            row |= {"cpu_limit_cores": 0.7, "owner_cpu_weight": 1024.0, "thread_count": 2}
    plan = planner_of(made, mode=mode, itval=10)
    found = decisions_of(plan).values()
    assert {(one.job_class, one.allocation.unlimited) for one in found} == {("CL", True)}
    if mode is Mode.QUOTA:
        assert {one.setting["cpus"] for one in found if one.setting} == {None}
    assert plan.plan({}).next_s == 20


@pytest.mark.parametrize(
    ("samples", "given", "wait"),
    [
        (4, {}, 10.0),  # 30: doubled to 20, so the next is at 50; 40 is 10 s before it
        (5, {}, 40.0),  # 50: doubled again
        (5, {"itval_max": 20}, 20.0),
        (5, {"itval_max": 10.0}, 10.0),
    ],
)
def test_the_interval_doubles_up_to_its_bound(samples, given, wait) -> None:
    losses = {"a": [0.5] * samples, "b": [0.5] * samples}
    assert planner_of(rows(losses, {"a": 1, "b": 1}), itval=10, **given).plan({}).next_s == wait


def test_an_arriving_job_starts_a_round_at_once_and_resets_the_interval() -> None:
    """Backed off to 20 s at 30, so due at 50; a third job's first loss at 39 makes 40 a round."""
    made = rows({"a": [0.5] * 4, "b": [0.5] * 4}, {"a": 1, "b": 1})
    made += [container(40, "new", 5.0), point(39, "new", 3.0)]
    plan = planner_of(made, itval=10)
    assert decisions_of(plan)["new"].job_class == "NL"
    assert plan.plan({}).next_s == 10


def test_a_leaving_job_starts_a_round_at_once_and_resets_the_interval() -> None:
    made = rows({"a": [0.5] * 4, "b": [0.5] * 3}, {"a": 1, "b": 1})
    plan = planner_of(made, itval=10)
    assert set(decisions_of(plan)) == {"a"}
    # a alone is completing: the round at 40 doubles the interval that was reset to 10.
    assert plan.plan({}).next_s == 20


def test_restarted_job_begins_anew() -> None:
    made = rows({"a": [0.5] * 4, "b": [0.5] * 4}, {"a": 1, "b": 1})
    for row in made:
        if row["kind"] == "container" and row["container_name"] == "b" and row["cpu_seconds"] == 40:
            row["started_at"] = row["time"]
            row["cpu_seconds"] = 0.0
    made.append(point(40, "b", 2.0))
    found = decisions_of(planner_of(made, itval=10))
    assert found["b"].job_class == "NL"
    assert found["a"].job_class == "CL"


def test_diverged_job_does_not_look_productive() -> None:
    """Its third report in a row that is not finite, at 40, is the first that counts."""
    losses = {"fast": [1.0, 0.9, 0.7, 0.4, 0.1], "nan": [1.0, *[math.nan] * 4]}
    found = decisions_of(planner_of(rows(losses, {"fast": 1, "nan": 1}), itval=10))
    assert found["nan"].job_class == "CL"
    assert "diverged" in found["nan"].reason


@pytest.mark.parametrize(("given", "job_class"), [({}, "CL"), ({"signed": False}, "NL")])
def test_only_change_for_the_better_counts_unless_the_paper_s_rule_is_set(given, job_class) -> None:
    """A loss that rises from 0.5 to 4 has no growth; by the paper's |E - E'| it has the most."""
    losses = {"fast": [1.0, 0.9, 0.7, 0.4], "worse": [1.0, 0.5, 2.0, 4.0]}
    found = decisions_of(planner_of(rows(losses, {"fast": 1, "worse": 1}), itval=10, **given))
    assert found["worse"].job_class == job_class


def test_rising_accuracy_is_growth() -> None:
    made = [
        row | ({"metric": "val_accuracy", "epoch": 1.0} if row["kind"] == "progress" else {})
        for row in rows({"a": [0.2, 0.5, 0.8]}, {"a": 1})
    ]
    assert decisions_of(planner_of(made, itval=10))["a"].job_class == "NL"


def test_first_sample_alone_uses_the_average_since_the_start_and_says_so() -> None:
    """The one-shot case at 60 s: 30 CPU seconds since the start, R = 30/60/2 = 0.25.

    Losses 1.0 (at 10) and 0.7 (at 50), itval 30: P = 0.3/30 = 0.01, G = 0.04.
    """
    made = [node(60), container(60, "a", 30.0), container(60, "b", 30.0)]
    made += [point(10, "a", 1.0), point(50, "a", 0.7), point(10, "b", 1.0), point(50, "b", 1.0)]
    found = decisions_of(planner_of(made))
    assert found["a"].job_class == "NL"
    assert "0.04 of loss (CPU averaged since its start)" in found["a"].reason
    assert found["b"].job_class == "WL"


# What is ours: growth that is unknown, and floors


def test_an_unknown_growth_is_no_limit() -> None:
    made = rows({"a": [1.0, 0.6, 0.3]}, {"a": 1})
    made += [container(30, "new", 5.0), point(29, "new", 3.0)]
    new = decisions_of(planner_of(made, itval=10))["new"]
    assert (new.allocation.unlimited, new.allocation.rank, new.setting) == (True, 0, None)
    assert "growth efficiency unknown" in new.reason


@pytest.mark.parametrize(
    ("until", "job_class", "free"),
    [(40, "CL", False), (70, "CL", False), (80, "NL", True), (120, "NL", True)],
)
def test_a_slow_job_that_falls_silent_is_new_after_four_intervals(until, job_class, free) -> None:
    """It is completing at 30 s, and says nothing from then on."""
    many = until // 10
    losses = {"fast": [1.0 - 0.08 * n for n in range(many)], "flat": [0.5] * many}
    made = rows(losses, {"fast": 1, "flat": 1}, cpus=4.0)
    silent = [row for row in made if row["time"] > at(30) and row.get("container_name") == "flat"]
    made = [row for row in made if row["kind"] != "progress" or row not in silent]
    # Its growth is unknown from 40 on, when the last interval has none of its points.
    flat = decisions_of(planner_of(made, itval=10))["flat"]
    assert (flat.job_class, flat.allocation.unlimited) == (job_class, free)
    assert flat.allocation.share == pytest.approx(1.0 if free else 1 / 3)


def test_while_a_growth_is_unknown_a_completing_job_has_the_floor() -> None:
    """flat creeps: G = 0.002/10 / (1/4) = 0.0008, all that is known of S: G/S would be 1."""
    made = rows({"flat": [1.0, 0.998, 0.996]}, {"flat": 1}, cpus=4.0)
    made += [container(30, "new", 5.0, cpu_limit_cores=4.0), point(29, "new", 3.0)]
    found = decisions_of(planner_of(made, itval=10))
    assert found["flat"].job_class == "CL"
    assert found["flat"].allocation.share == pytest.approx(1 / 3)
    assert found["flat"].allocation.rank > found["new"].allocation.rank


@pytest.mark.parametrize(("floor", "share"), [(True, 1 / 4), (False, 0.05 / 0.81)])
def test_no_growing_job_gets_less_than_a_completing_one(floor, share) -> None:
    """R = 1/4 each: fast G = 0.19/10 * 4 = 0.076 of a peak of 1; slow 0.0125/10 * 4 = 0.005 of a
    peak of 1, at alpha 0.004 still growing; flat 0. S = 0.081: slow's part is 0.0617."""
    losses = {"fast": [1.0, 0.81, 0.62], "slow": [1.0, 0.9875, 0.975], "flat": [1.0, 1.0, 1.0]}
    made = rows(losses, dict.fromkeys(losses, 1), cpus=4.0)
    found = decisions_of(planner_of(made, itval=10, alpha=0.004, floor=floor))
    assert [found[name].job_class for name in ("slow", "flat")] == ["NL", "CL"]
    assert found["slow"].allocation.share == pytest.approx(share)
    assert found["flat"].allocation.share == pytest.approx(1 / 4)


@pytest.mark.parametrize(("early", "shares"), [("true", {"a": 1 / 3, "b": 2 / 3}), ("false", None)])
def test_first_reports_rank_new_jobs(early, shares) -> None:
    # Both use one CPU of two. a falls by 1/10 of its peak in 1 s, b by 2/10: G is 0.2 and 0.4.
    made = [node(1), container(1, "a", 1.0), container(1, "b", 1.0)]
    made += [point(1, "a", 10.0), point(1, "b", 10.0)]
    made += [node(2), container(2, "a", 2.0), container(2, "b", 2.0)]
    made += [point(2, "a", 9.0), point(2, "b", 8.0)]
    found = decisions_of(planner_of(made, mode=Mode.PRIORITY, early=early))
    if shares is None:
        assert all(one.allocation.unlimited for one in found.values())
        return
    assert {name: one.allocation.share for name, one in found.items()} == pytest.approx(shares)
    assert {one.job_class for one in found.values()} == {"NL"}
    assert found["b"].allocation.reason == "growing: growth efficiency 0.4 of loss (first reports)"
