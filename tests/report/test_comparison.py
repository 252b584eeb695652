"""Runs compared, by hand."""

from __future__ import annotations

from dltools.observations.outcomes import JobResult
from dltools.report.comparison import by_job, by_policy, means, ratio


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
