"""Runs compared and ranked, by hand."""

import pytest

from dltools.observations.outcomes import JobResult
from dltools.report.result_rows import best_first, by_job, by_policy, means, ratio


def results(*finishes: float | None) -> list[JobResult]:
    return [JobResult(str(number), "h", 0.0, 0.0, finish) for number, finish in enumerate(finishes)]


def test_ratios_are_to_the_baseline_by_default_the_first() -> None:
    runs = {"a": [results(10)], "b": [results(5)]}
    assert [row["makespan_ratio"] for row in by_policy(runs)] == [1.0, 0.5]
    assert [row["makespan_ratio"] for row in by_policy(runs, "b", "run")] == [2.0, 1.0]
    assert [row["run"] for row in by_policy(runs, "b", "run")] == ["a", "b"]


def test_means_are_over_the_repeats_that_have_the_value() -> None:
    found = means([results(10, 20), results(None), results(40)])
    assert (found["makespan"], found["mean_completion"], found["satisfied"]) == (30, 27.5, None)
    assert found["unfinished"] == 1 / 3


def test_a_row_per_job_has_its_seed() -> None:
    rows = by_job({"a": [results(10), results(12)]}, [7, 8])
    assert [(row["seed"], row["completion"]) for row in rows] == [(7, 10), (8, 12)]


def test_a_ratio_to_nothing_is_none() -> None:
    assert [ratio(None, 1), ratio(1, None), ratio(1, 0), ratio(1, 2)] == [None, None, None, 0.5]


def served(satisfied: float) -> list[list[JobResult]]:
    return [[JobResult("s", "h", 0.0, 0.0, 8.0, served=8.0, satisfied=satisfied)]]


LATE, TWO = {"noop": [results(None)]}, [results(8), results(14)]
NEAR = {"noop": [results(12)], "plain": [results(10)], "other": [results(10.2)]}


@pytest.mark.parametrize(
    ("criterion", "runs", "order"),
    [
        ("makespan", {"noop": [results(10)] * 2, "b": TWO, "c": [results(4)]}, "c noop b"),
        ("mean_completion", LATE | {"b": [results(99)]}, "b noop"),  # what did not end is last
        ("satisfied", {"noop": [results(10)]}, ""),  # nor is there an order without a value
        ("makespan", LATE, ""),
        ("satisfied", {"few": served(2.0), "many": served(4.0)}, "many few"),
        ("makespan", NEAR | {"cluster": [results(9.96)]}, "plain cluster other noop"),  # equal ones
    ],
)
def test_the_best_is_first(criterion, runs, order) -> None:
    found = [row["policy"] for row in best_first(by_policy(runs), criterion)]
    assert found == order.split()
