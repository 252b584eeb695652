"""Which containers are one job, and what it is judged by."""

from __future__ import annotations

import math

from dltools.observations.containers import ContainerRecord, SeriesPoint
from dltools.report.jobs import observed_jobs


def record(name: str, host: str, first: float, last: float, **more: object) -> ContainerRecord:
    return ContainerRecord(host, f"{name}-{host}-{first}", name, first, last, **more)  # type: ignore[arg-type]


def names(*records: ContainerRecord) -> list[tuple[str, int]]:
    return [(job.name, len(job.containers)) for job in observed_jobs(records)]


def test_jobs_come_by_their_first_appearance() -> None:
    assert names(record("b", "h", 5, 9), record("a", "h", 0, 9)) == [("a", 1), ("b", 1)]


def test_a_name_that_goes_on_elsewhere_is_the_same_job() -> None:
    assert names(record("a", "h", 0, 9), record("a", "i", 9, 20)) == [("a", 2)]


def test_the_same_name_at_the_same_time_or_on_the_same_host_is_another_job() -> None:
    assert names(record("a", "h", 0, 9), record("a", "i", 8, 20)) == [("a", 1), ("a (2)", 1)]
    assert names(record("a", "h", 0, 9), record("a", "h", 12, 20)) == [("a", 1), ("a (2)", 1)]
    many = [record("a", host, 0, 9) for host in "hij"]
    assert names(*many) == [("a", 1), ("a (2)", 1), ("a (3)", 1)]


def test_the_points_of_all_containers_are_in_order() -> None:
    one = record("a", "h", 0, 9, series={"loss": [SeriesPoint(1, 5.0), SeriesPoint(11, 3.0)]})
    two = record("a", "i", 9, 20, series={"loss": [SeriesPoint(10, 4.0)]})
    (job,) = observed_jobs([one, two])
    assert job.series == {"loss": [(1, 5.0), (10, 4.0), (11, 3.0)]}
    assert one.series["loss"] == [(1, 5.0), (11, 3.0)]  # as it was


def test_the_metric_is_the_labelled_one_or_the_best_to_judge_by() -> None:
    series = {name: [SeriesPoint(1, 5.0)] for name in ("grad_norm", "val_loss", "accuracy")}
    labels = {"dltools.metric": "accuracy", "dltools.target": "0.9"}
    (job,) = observed_jobs([record("a", "h", 0, 9, series=series)])
    (labelled,) = observed_jobs([record("a", "h", 0, 9, series=series, labels=labels)])
    (silent,) = observed_jobs([record("a", "h", 0, 9)])
    assert (job.metric, labelled.metric, silent.metric) == ("val_loss", "accuracy", "")
    assert job.latencies == []


def test_the_metric_is_the_one_that_the_policies_judge_by() -> None:
    points = [SeriesPoint(second, 5.0) for second in (1, 2, 3)]
    series = {"val_accuracy": [SeriesPoint(1, math.nan)], "loss": points, "kl": points}
    (job,) = observed_jobs([record("a", "h", 0, 9, series=series)])
    assert job.metric == "loss"
    labels = {"dltools.metric": "kl"}
    (job,) = observed_jobs([record("a", "h", 0, 9, series=series, labels=labels)])
    assert job.metric == "kl"
    labels = {"dltools.metric": "val_accuracy"}
    (job,) = observed_jobs([record("a", "h", 0, 9, series=series, labels=labels)])
    assert job.metric == "loss"
    once = {"val_loss": points[:1], "loss": points}
    (job,) = observed_jobs([record("a", "h", 0, 9, series=once)])
    assert job.metric == "loss"
