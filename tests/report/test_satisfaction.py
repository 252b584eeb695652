"""How long response-time targets were kept, worked by hand."""

from __future__ import annotations

from dltools.observations.containers import ContainerRecord, SeriesPoint
from dltools.report.jobs import ObservedJob, observed_jobs
from dltools.report.run import Run, Timeline
from dltools.report.satisfaction import satisfied_jobs, service

LABELS = {"dltools.qoe": "0.1"}


def jobs(**latencies: list[tuple[float, float]]) -> list[ObservedJob]:
    return observed_jobs(
        ContainerRecord("h", name, name, 0.0, 20.0, labels=LABELS, series={
            "latency_seconds": [SeriesPoint(*point) for point in points]})
        for name, points in latencies.items()
    )  # fmt: skip


def test_a_response_time_holds_until_the_next() -> None:
    (job,) = jobs(a=[(2, 0.2), (4, 0.1), (16, 0.3), (17, 0.1)])
    found = service(job)
    assert (found.served, found.satisfied) == (15, 12)


def test_a_job_without_response_times_did_not_serve() -> None:
    (job,) = jobs(a=[])
    assert (service(job).served, service(job).satisfied) == (0, 0)


def test_jobs_are_counted_whenever_the_count_changes_and_until_they_end() -> None:
    found = jobs(a=[(2, 0.2), (4, 0.1), (16, 0.1)], b=[(6, 0.1), (8, 0.1)])
    run = Run("r", timelines={"a": Timeline(), "b": Timeline(ended=10.0)})
    assert satisfied_jobs(found, run, 0.0) == [(0, 0), (4, 1), (6, 2), (10, 1), (16, 1)]


def test_without_targets_nothing_is_counted() -> None:
    plain = observed_jobs([ContainerRecord("h", "a", "a", 0.0, 20.0)])
    assert satisfied_jobs(plain, Run("r", timelines={"a": Timeline()}), 0.0) == []
