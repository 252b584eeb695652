"""Runs compared and ranked, by hand."""

import math

import pytest

from dltools.observations.outcomes import JobResult, summarise
from dltools.report.ranking import CRITERIA, Trial, by_job, by_policy, means, ranked, ratio


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


def trial(name: str, *finishes: float | None, complexity: int = 0) -> Trial:
    """A run of a job for each finish."""
    runs = [[JobResult("a", "h", 0.0, 0.0, finish)] for finish in finishes]
    command = f"dl-plan --policy {name}"
    return Trial(name, "weight", ("itval=5", "alpha=1"), command, runs, complexity)


def test_the_best_is_first_with_its_ratio_to_the_first_trial() -> None:
    trials = [trial("noop", 10, 10), trial("b", 8, 12), trial("c", 4, 6)]
    rows = ranked(trials, CRITERIA["makespan"])
    assert [(row["policy"], row["makespan"], row["makespan_ratio"]) for row in rows] == [
        ("c", 5, 0.5),
        ("noop", 10, 1.0),
        ("b", 10, 1.0),
    ]
    assert (rows[0]["set"], rows[0]["command"]) == ("itval=5 alpha=1", "dl-plan --policy c")


def test_a_run_that_did_not_end_is_last() -> None:
    rows = ranked([trial("noop", None), trial("b", 99)], CRITERIA["mean_completion"])
    assert [row["policy"] for row in rows] == ["b", "noop"]


def test_runs_without_the_criterion_have_no_ranking() -> None:
    assert ranked([trial("noop", 10)], CRITERIA["satisfied"]) == []
    assert ranked([trial("noop", None)], CRITERIA["makespan"]) == []


@pytest.mark.parametrize(("name", "score"), [("mean_completion", 8), ("satisfied", -0.5)])
def test_less_is_better_but_of_satisfied_models(name: str, score: float) -> None:
    jobs = [
        JobResult("a", "h", 0.0, 0.0, 8.0),
        JobResult("s", "h", 0.0, 0.0, 8.0, served=8.0, satisfied=4.0),
    ]
    assert CRITERIA[name].score(summarise(jobs)) == score
    assert CRITERIA["time_to_target"].score(summarise(jobs)) == math.inf


def test_of_equal_ones_the_simplest_is_first() -> None:
    trials = [
        trial("noop", 12),
        trial("cluster", 9.96, complexity=30),
        trial("plain", 10, complexity=20),
        trial("other", 10.2, complexity=10),
    ]
    rows = ranked(trials, CRITERIA["makespan"])
    assert [(row["policy"], row["as_good_as_best"]) for row in rows] == [
        ("plain", True),
        ("cluster", True),
        ("other", False),
        ("noop", False),
    ]


def test_what_differs_by_less_than_the_spread_over_the_seeds_is_equal() -> None:
    steady = trial("steady", 9, 10, 11, complexity=20)
    rows = ranked([trial("noop", 12, 9, 13), steady], CRITERIA["makespan"])
    assert [(row["policy"], row["as_good_as_best"]) for row in rows] == [
        ("noop", True),
        ("steady", True),
    ]
    rows = ranked([trial("noop", 12, 13, 14), steady], CRITERIA["makespan"])
    assert [(row["policy"], row["as_good_as_best"]) for row in rows] == [
        ("steady", True),
        ("noop", False),
    ]
