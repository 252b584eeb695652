"""A recording as a run, worked by hand: jobs, targets, limits, migrations, satisfied models."""

import math
from collections.abc import Sequence

import pytest
from helpers.recorded_jobs import at, container, ended, node, point, recording

from dltools.errors import DataError
from dltools.notation.limits import Limits
from dltools.observations.container_records import ContainerRecord, ContainerSample, SeriesPoint
from dltools.observations.outcomes import summarise
from dltools.observations.table import Row
from dltools.report.observed_run import (
    observed_jobs,
    observed_run,
    settings,
    time_served,
    timeline,
    weight_sums,
)
from dltools.report.timelines import Run


def observed(rows: list[Row]) -> Run:
    return observed_run([recording(rows)], "r", "test")


TARGETS = (
    '{"dltools.metric": "acc", "dltools.objective": "max",'
    ' "dltools.target": "0.5", "dltools.target.final": "0.9"}'
)


def sampled(times: Sequence[float], *names: str) -> list[Row]:
    """Samples of a host with containers that use a CPU each."""
    return [node(t) for t in times] + [container(t, name, t) for t in times for name in names]


def test_jobs_come_and_go_and_meet_their_targets() -> None:
    rows = [node(t) for t in (0, 10, 20, 30)]
    rows += [container(t, "a", t, labels=TARGETS) for t in (0, 10, 20)]
    rows += [container(t, "b", t / 2, started_at=at(7)) for t in (10, 20, 30)]
    rows += [point(t, "a", "acc", v) for t, v in ((5, 0.4), (12, 0.6), (18, 0.7))]
    found = observed(rows)
    a, b = found.jobs
    assert (a.name, a.arrival, a.finish, a.first, a.final, a.cpu) == ("a", 0, 20, 12, None, 20)
    assert (b.name, b.arrival, b.finish, b.cpu) == ("b", 7, None, 15)
    assert found.timelines["a"].progress == [(5, 0.4), (12, 0.6), (18, 0.7)]
    assert found.timelines["a"].use == [(10, 1.0), (20, 1.0)]
    assert found.end == 30


def test_a_loss_that_is_no_number_is_data() -> None:
    rows = sampled((0, 10), "a", "b")
    rows += [point(2, "a", "loss", 1.0), point(4, "a", "loss", math.nan)]
    rows += [point(2, "b", "loss", math.nan), point(4, "b", "loss", 0.5)]
    timelines = observed(rows).timelines
    assert (timelines["a"].progress, timelines["a"].has_diverged) == ([(2, 1.0)], True)
    assert (timelines["b"].progress, timelines["b"].has_diverged) == ([(4, 0.5)], False)


def test_one_name_on_two_hosts_one_after_the_other_is_a_migration() -> None:
    rows = [node(t, host) for t in (0, 10, 20, 30) for host in "hi"]
    rows += [container(t, "a", t) for t in (0, 10)]
    rows += [container(t, "a", t - 20, "i") for t in (20, 30)]
    rows += [container(t, "b", t, host) for t in (0, 10, 20, 30) for host in "hi"]
    found = observed(rows)
    assert [job.name for job in found.jobs] == ["a", "b", "b (2)"]
    assert (found.jobs[0].migrations, found.jobs[0].node) == (1, "i")
    assert found.timelines["a"].migrated == [20]
    assert found.timelines["a"].use == [(10, 1.0), (20, 0.0), (30, 1.0)]
    assert found.timelines["a"].limit[2] == (10, 0.0)


def test_models_are_satisfied_while_they_meet_their_targets() -> None:
    labels = '{"dltools.qoe": "0.1"}'
    rows = [node(t) for t in (0, 10, 20)]
    rows += [container(t, "a", t, labels=labels) for t in (0, 10, 20)]
    rows += [container(t, "b", t, labels=labels) for t in (0, 10)]
    rows += [point(t, "a", "latency_seconds", v) for t, v in ((2, 0.2), (4, 0.1), (16, 0.1))]
    rows += [point(t, "b", "latency_seconds", v) for t, v in ((6, 0.105), (8, 0.1))]
    found = observed(rows)
    a, b = found.jobs
    assert (a.served, a.satisfied) == (14, 12)
    assert (b.served, b.satisfied) == (2, 2)


def test_a_counter_that_begins_anew_is_added_to_what_was_used_before() -> None:
    rows = [node(t) for t in (0, 10, 20, 30, 40)]
    rows += [container(t, "a", t, started_at=at(-50)) for t in (0, 10)]  # 10 s of its life
    rows += [
        container(t, "a", t - 17, container_name="renamed", started_at=at(17)) for t in (20, 30)
    ]
    rows += [container(40, "a", math.nan, container_name="renamed", started_at=at(17))]
    (job,) = observed(rows).jobs
    assert (job.name, job.cpu, job.finish) == ("renamed", 10 + 13, None)


def test_a_counter_that_wavers_is_no_restart() -> None:
    rows = [node(t) for t in (0, 10, 20)]
    rows += [
        container(t, "a", cpu, started_at=at(-9)) for t, cpu in ((0, 50), (10, 49.9), (20, 55))
    ]
    assert observed(rows).jobs[0].cpu == pytest.approx(5.1)


@pytest.mark.parametrize("code", [1, 3, 137])
def test_a_job_that_exits_with_an_error_has_failed_and_not_finished(code) -> None:
    rows = [node(t) for t in (0, 10, 20, 30)]
    rows += [container(t, n, t) for t in (0, 10) for n in ("bad", "good", "unknown")]
    rows += [ended(12, "bad", code), ended(12, "good", 0)]
    found = observed(rows)
    bad, good, unknown = found.jobs
    assert (bad.finish, bad.completion, bad.exit_code) == (None, None, code)
    assert (good.finish, good.exit_code) == (12, None)
    assert (unknown.finish, unknown.exit_code) == (10, None)
    assert [found.timelines[job.name].ended for job in found.jobs] == [12, 12, 10]
    summary = summarise(found.jobs)
    assert (summary.unfinished, summary.failed, summary.mean_completion) == (1, 1, 11)


def test_an_exit_in_the_last_sample_is_an_end() -> None:
    rows = [*sampled((0, 10), "a", "b"), ended(10.1, "a", 0), ended(10.2, "b", 2)]
    a, b = observed(rows).jobs
    assert (a.finish, b.finish, b.exit_code) == (pytest.approx(10.1), None, 2)


def test_a_job_that_was_started_again_has_not_failed() -> None:
    rows = sampled((0, 10, 20, 30), "b") + [container(t, "a", t) for t in (0, 10)]
    for name in "ab":
        rows += [ended(11, name, 1), ended(12, name, None, event="start")]
    rows += [ended(13, "a", 0)]
    a, b = observed(rows).jobs
    assert (a.finish, a.exit_code) == (13, None)
    assert (b.finish, b.exit_code) == (None, None)


@pytest.mark.parametrize("code", [130, 137, 143])
def test_a_serving_container_that_is_stopped_has_not_failed(code) -> None:
    rows = [node(t) for t in (0, 10, 20)] + [container(t, "a", t) for t in (0, 10)]
    rows += [point(t, "a", "latency_seconds", 0.1) for t in (2, 4)] + [ended(12, "a", code)]
    (job,) = observed(rows).jobs
    assert (job.finish, job.exit_code) == (12, None)


def test_an_unfinished_job_too_shows_how_long_it_was_paused_or_held_back() -> None:
    rows = [node(t) for t in (0, 10, 20, 30)]
    rows += [container(t, "a", t) for t in (0, 20, 30)] + [container(10, "a", 10, state="paused")]
    rows += [container(t, "b", 0.01 * t, cpu_weight=2.0) for t in (0, 10, 20)]
    rows += [container(t, "idle", 0.0) for t in (0, 10, 20, 30)]
    found = observed(rows)
    lines = found.timelines.values()
    assert [(line.paused, line.held_back) for line in lines] == [(10, 0), (0, 20), (0, 0)]
    assert found.jobs[0].finish is None
    unfinished = observed(sampled((0, 10), "a")).jobs
    assert math.isnan(summarise(unfinished).makespan)


def test_of_saved_logs_the_progress_is_reported() -> None:
    rows = [point(t, "a", "loss", 9 - t, "log") for t in (0, 2, 4)]
    rows += [point(t, "b", "val_accuracy", t, "log") for t in (3, 5)]
    found = observed(rows)
    assert found.is_sampled is False
    arrivals = [(job.name, job.node, job.arrival) for job in found.jobs]
    assert arrivals == [("a", "log", 0), ("b", "log", 3)]
    assert {(job.finish, job.cpu) for job in found.jobs} == {(None, 0)}  # logs do not tell
    assert found.timelines["a"].progress == [(0, 9), (2, 7), (4, 5)]
    assert (found.timelines["b"].use, found.timelines["b"].limit) == ([], [])
    assert found.end == 5


def test_logs_beside_a_host_are_jobs_too() -> None:
    rows = [point(t, "a", "loss", 9 - t, "log") for t in (0, 2)]
    rows += sampled((0, 10), "b")
    rows += [point(1, "gone", "loss", 1.0)]  # of a host on which others were seen
    found = observed(rows)
    assert [job.name for job in found.jobs] == ["a", "b"]
    assert found.is_sampled


def test_a_recording_without_containers_is_refused() -> None:
    with pytest.raises(DataError, match="no container and no progress"):
        observed([node(0)])


def record(name: str, host: str, first: float, last: float, **more: object) -> ContainerRecord:
    return ContainerRecord(host, f"{name}-{host}-{first}", name, first, last, **more)  # type: ignore[arg-type]


def names(*records: ContainerRecord) -> list[tuple[str, int]]:
    return [(job.name, len(job.containers)) for job in observed_jobs(records)]


def test_a_name_that_goes_on_elsewhere_is_the_same_job_and_others_are_not() -> None:
    assert names(record("b", "h", 5, 9), record("a", "h", 0, 9)) == [("a", 1), ("b", 1)]
    assert names(record("a", "h", 0, 9), record("a", "i", 9, 20)) == [("a", 2)]
    # At the same time, and on the same host.
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


POINTS = [SeriesPoint(second, 5.0) for second in (1, 2, 3)]
ALL = {"val_accuracy": [SeriesPoint(1, math.nan)], "loss": POINTS, "kl": POINTS}
ONCE = {"val_loss": POINTS[:1], "loss": POINTS}
THREE = dict.fromkeys(("grad_norm", "val_loss", "accuracy"), POINTS[:1])


@pytest.mark.parametrize(
    ("series", "labels", "metric"),
    [
        (ALL, {}, "loss"),
        (ALL, {"dltools.metric": "kl"}, "kl"),
        (ALL, {"dltools.metric": "val_accuracy"}, "loss"),
        (ONCE, {}, "loss"),
        (THREE, {}, "val_loss"),
        (THREE, {"dltools.metric": "accuracy", "dltools.target": "0.9"}, "accuracy"),
        ({}, {}, ""),
    ],
)
def test_the_metric_is_the_one_that_the_policies_judge_by(series, labels, metric) -> None:
    (job,) = observed_jobs([record("a", "h", 0, 9, series=series, labels=labels)])
    assert (job.metric, job.latencies) == (metric, [])


UNKNOWN = math.nan


def sample(time: float = 0.0, given: Limits | None = None, **more: object) -> ContainerSample:
    usual: Limits = {"cpus": 2.0, "weight": 1024.0, "cpuset": "0-1"}
    in_force: Limits = {**usual, **(given or {})}
    here = ContainerSample(time, 2.0, "running", UNKNOWN, time, in_force, UNKNOWN)
    return here._replace(**more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {}),
        ({"given": {"cpus": 0.5}}, {"cpus": 0.5}),
        ({"given": {"weight": 300.0}}, {"weight": 300.0}),
        ({"given": {"cpuset": "1"}}, {"cpuset": "1"}),
        ({"state": "paused"}, {"state": "paused"}),
        ({"turn_s": 2.0}, {"turn_s": 2.0}),
        ({"turn_s": 2.0, "turn_queue": "GPU-1"}, {"turn_s": 2.0, "queue": "GPU-1"}),
        ({"limits": {"cpuset": "0-1"}, "host_cpus": UNKNOWN}, {}),
    ],
)
def test_settings_leave_out_defaults(more, expected) -> None:
    assert settings(sample(**more)) == expected


def limits(**by_name: list[ContainerSample]) -> dict[str, list[tuple[float, float]]]:
    records = [
        ContainerRecord("h", name, name, samples[0].time, samples[-1].time, samples=samples)
        for name, samples in by_name.items()
    ]
    weights = weight_sums(records)
    return {
        job.name: list(map(tuple, timeline(job, weights, 0.0, 99.0).limit))  # type: ignore[arg-type]
        for job in observed_jobs(records)
    }


def test_what_is_allowed_is_a_share_by_weight_unless_a_limit_is_lower() -> None:
    found = limits(a=[sample(given={"weight": 3072.0})], b=[sample()])
    assert found == {"a": [(0, 1.5)], "b": [(0, 0.5)]}
    found = limits(a=[sample(given={"cpus": 0.3})], b=[sample(given={"cpuset": "0"})], c=[sample()])
    assert found == {"a": [(0, 0.3)], "b": [(0, 1.0)], "c": [(0, pytest.approx(2 / 3))]}
    found = limits(a=[sample(state="paused")], b=[sample()])  # it takes no part
    assert found == {"a": [(0, 0.0)], "b": [(0, 2.0)]}
    unknown = sample(limits={}, host_cpus=UNKNOWN)
    assert limits(a=[unknown]) == {"a": []}


@pytest.mark.parametrize(
    ("last", "exited", "ended"),
    [(20.0, math.nan, None), (10.0, math.nan, 10.0), (20.0, 20.0, 20.0), (10.0, 13.5, 13.5)],
)
def test_a_job_has_ended_that_is_gone_at_the_last_sample_or_has_exited(last, exited, ended) -> None:
    samples = [sample(0), sample(last)]
    one = ContainerRecord("h", "a", "a", 0.0, last, samples=samples, exited=exited)
    (job,) = observed_jobs([one])
    assert timeline(job, weight_sums([one]), 0.0, 20.0).ended == ended


@pytest.mark.parametrize(
    ("times", "served", "satisfied"),
    [([(2, 0.2), (4, 0.1), (16, 0.3), (17, 0.1)], 15, 12), ([], 0, 0)],
)
def test_a_response_time_holds_until_the_next(times, served, satisfied) -> None:
    labels = {"dltools.qoe": "0.1"}
    series = {"latency_seconds": [SeriesPoint(*one) for one in times]}
    (job,) = observed_jobs([record("a", "h", 0.0, 20.0, labels=labels, series=series)])
    assert time_served(job) == (served, satisfied)
