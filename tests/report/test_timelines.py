"""What a job was allowed, worked by hand, and its settings."""

from __future__ import annotations

import math

import pytest

from dltools.observations.containers import ContainerRecord, ContainerSample
from dltools.report.jobs import observed_jobs
from dltools.report.timelines import settings, timeline, weight_sums

UNKNOWN = math.nan


def sample(time: float = 0.0, **more: object) -> ContainerSample:
    usual = ContainerSample(time, 2.0, "running", UNKNOWN, time, 2.0, 1024.0, "0-1", UNKNOWN)
    return usual._replace(**more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {}),
        ({"cpu_limit": 0.5}, {"cpus": 0.5}),
        ({"cpu_weight": 300.0}, {"cpu_weight": 300.0}),
        ({"cpuset": "1"}, {"cpuset": "1"}),
        ({"state": "paused"}, {"state": "paused"}),
        ({"turn_s": 2.0}, {"turn_s": 2.0}),
        ({"turn_s": 2.0, "turn_queue": "GPU-1"}, {"turn_s": 2.0, "queue": "GPU-1"}),
        ({"cpu_limit": UNKNOWN, "host_cpus": UNKNOWN}, {}),
    ],
)
def test_settings_leave_out_defaults(more: dict[str, object], expected: dict[str, object]) -> None:
    assert settings(sample(**more)) == expected


def limits(**by_name: list[ContainerSample]) -> dict[str, list[tuple[float, float]]]:
    records = [ContainerRecord("h", name, name, samples[0].time, samples[-1].time, samples=samples)
               for name, samples in by_name.items()]  # fmt: skip
    weights = weight_sums(records)
    return {job.name: list(map(tuple, timeline(job, weights, 0.0, 99.0).limit))  # type: ignore[arg-type]
            for job in observed_jobs(records)}  # fmt: skip


def test_what_is_allowed_is_a_share_by_weight_unless_a_limit_is_lower() -> None:
    found = limits(a=[sample(cpu_weight=3072.0)], b=[sample()])
    assert found == {"a": [(0, 1.5)], "b": [(0, 0.5)]}
    found = limits(a=[sample(cpu_limit=0.3)], b=[sample(cpuset="0")], c=[sample()])
    assert found == {"a": [(0, 0.3)], "b": [(0, 1.0)], "c": [(0, pytest.approx(2 / 3))]}


def test_a_paused_container_takes_no_part() -> None:
    found = limits(a=[sample(state="paused")], b=[sample()])
    assert found == {"a": [(0, 0.0)], "b": [(0, 2.0)]}


def test_a_limit_that_is_unknown_is_left_out() -> None:
    assert limits(a=[sample(cpu_limit=UNKNOWN, host_cpus=UNKNOWN, cpuset="")]) == {"a": []}


@pytest.mark.parametrize(
    ("last", "exited", "ended"),
    [(20.0, math.nan, None), (10.0, math.nan, 10.0), (20.0, 20.0, 20.0), (10.0, 13.5, 13.5)],
)
def test_a_job_has_ended_that_is_gone_at_the_last_sample_or_has_exited(
    last: float, exited: float, ended: float | None
) -> None:
    one = ContainerRecord("h", "a", "a", 0.0, last, samples=[sample(0), sample(last)],
                          exited=exited)  # fmt: skip
    (job,) = observed_jobs([one])
    assert timeline(job, weight_sums([one]), 0.0, 20.0).ended == ended
