"""Runs compared and ranked, by hand."""

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


def order(criterion: str, **runs: list[list[JobResult]]) -> list[str]:
    return [row["policy"] for row in best_first(by_policy(runs), criterion)]


def test_the_best_is_first() -> None:
    runs = {"noop": [results(10), results(10)], "b": [results(8), results(14)], "c": [results(4)]}
    assert order("makespan", **runs) == ["c", "noop", "b"]


def test_a_run_that_did_not_end_is_last() -> None:
    assert order("mean_completion", noop=[results(None)], b=[results(99)]) == ["b", "noop"]


def test_runs_without_the_criterion_have_no_order() -> None:
    assert order("satisfied", noop=[results(10)]) == []
    assert order("makespan", noop=[results(None)]) == []


def test_more_satisfied_models_are_better() -> None:
    few, many = (
        [[JobResult("s", "h", 0.0, 0.0, 8.0, served=8.0, satisfied=satisfied)]]
        for satisfied in (2.0, 4.0)
    )
    assert order("satisfied", few=few, many=many) == ["many", "few"]


def test_of_equal_ones_the_first_stays_first() -> None:
    runs = {"noop": [results(12)], "plain": [results(10)], "other": [results(10.2)]}
    found = order("makespan", **runs, cluster=[results(9.96)])
    assert found == ["plain", "cluster", "other", "noop"]
