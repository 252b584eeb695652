"""Containers over time, worked by hand: CPU use through restarts, what limits allow."""

from __future__ import annotations

import math

import pytest

from dltools.observations.containers import (
    ContainerRecord,
    ContainerRecords,
    ContainerSample,
    HostRecord,
)

UNKNOWN = math.nan


def sample(time: float, cpu: float = 0.0, **more: object) -> ContainerSample:
    usual = ContainerSample(time, 4.0, "running", UNKNOWN, cpu, 4.0, 1024.0, "", UNKNOWN)
    return usual._replace(**more)  # type: ignore[arg-type]


def record(*samples: ContainerSample) -> ContainerRecord:
    first, last = samples[0].time, samples[-1].time
    return ContainerRecord("h", "c", "name", first, last, samples=list(samples))


def uses(one: ContainerRecord) -> list[tuple[float, float, float]]:
    return [(use.begin.time, use.end.time, use.seconds) for use in one.cpu_uses()]


def test_cpu_use_is_the_growth_of_the_counter() -> None:
    one = record(sample(0, 5), sample(10, 15), sample(20, 16))
    assert uses(one) == [(0, 10, 10), (10, 20, 1)]
    assert [use.cores for use in one.cpu_uses()] == [1.0, 0.1]


def test_samples_without_a_counter_are_passed_over() -> None:
    one = record(sample(0, 5), sample(10, UNKNOWN), sample(20, 9))
    assert uses(one) == [(0, 20, 4)]
    assert uses(record(sample(0, UNKNOWN))) == []


@pytest.mark.parametrize(("started", "used"), [((1, 12), 3), ((1, 1), 0), ((UNKNOWN, 12), 3)])
def test_a_counter_that_falls_begins_anew_unless_the_start_is_the_same(
    started: tuple[float, float], used: float
) -> None:
    before, after = started
    one = record(sample(10, 50, started=before), sample(20, 3, started=after))
    assert uses(one) == [(10, 20, used)]


def test_no_time_is_no_use() -> None:
    (use,) = record(sample(10, 5), sample(10, 6)).cpu_uses()
    assert (use.span_s, use.cores) == (0, 0)


@pytest.mark.parametrize(("started", "expected"), [(8, 5), (-8, 2)])
def test_what_was_used_before_the_first_sample_counts_since_the_start(
    started: float, expected: float
) -> None:
    one = record(sample(10, 3, started=started), sample(20, 5, started=started))
    assert one.cpu_seconds_since(0) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 4.0),
        ({"cpu_limit": 1.5}, 1.5),
        ({"cpuset": "0-1"}, 2.0),
        ({"cpu_limit": 1.5, "cpuset": "0-1"}, 1.5),
        ({"cpu_limit": 1.5, "cpuset": "what"}, 1.5),
        ({"cpu_limit": 1.5, "state": "paused"}, 0.0),
    ],
)
def test_state_quota_and_cpu_list_allow_cores(more: dict[str, object], expected: float) -> None:
    assert sample(0, **more).allowed_cores() == expected


def test_an_unknown_quota_allows_what_is_not_known() -> None:
    assert math.isnan(sample(0, cpu_limit=UNKNOWN).allowed_cores())


def test_the_last_sample_is_that_of_all_hosts() -> None:
    hosts = [HostRecord("a", 1.0, 5.0), HostRecord("b", 1.0, 9.0), HostRecord("log")]
    assert ContainerRecords(hosts, []).last_sampled == 9.0
    assert ContainerRecords(hosts[2:], []).last_sampled == math.inf
