"""The lease: how long settings hold without a new plan."""

from __future__ import annotations

import pytest

from dltools.apply.lease import FIRST_S, LEAST_S, Lease


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def renewed(asked_s: float | None, *intervals: float) -> tuple[Lease, Clock]:
    clock = Clock()
    lease = Lease(asked_s, clock)
    lease.renew()
    for interval in intervals:
        clock.now += interval
        lease.renew()
    return lease, clock


@pytest.mark.parametrize(
    ("asked_s", "intervals", "length"),
    [(None, (), FIRST_S), (None, (1.0,), LEAST_S), (None, (20.0,), 60.0), (None, (20.0, 0.2), 60.0),
     (2.5, (), 2.5), (2.5, (20.0,), 2.5), (None, (50.0, *[20.0] * 10), 60.0)],
)  # fmt: skip
def test_it_is_three_intervals_unless_another_is_asked_for(
    asked_s: float | None, intervals: tuple[float, ...], length: float
) -> None:
    lease, clock = renewed(asked_s, *intervals)
    assert lease.length_s == lease.seconds_left() == length
    clock.now += length - 1
    assert lease.seconds_left() == 1
    clock.now += 2
    assert lease.seconds_left() == 0


def test_what_has_ended_counts_from_the_next_plan_on() -> None:
    lease, clock = renewed(None, 20.0)
    lease.end()
    assert lease.seconds_left() is None
    clock.now += 500
    lease.renew()
    assert lease.seconds_left() == 60  # the time without a plan was no interval


@pytest.mark.parametrize(
    ("asked_s", "live", "planned", "other"),
    [(None, True, True, False), (5.0, True, True, True), (0.0, False, False, False)],
)
def test_it_is_for_streams_and_plans_that_name_one_unless_it_is_asked_for(
    asked_s: float | None, live: bool, planned: bool, other: bool
) -> None:
    lease = Lease(asked_s)
    assert lease.is_for(None, is_live=True) == live
    assert lease.is_for(180.0, is_live=False) == planned
    assert lease.is_for(None, is_live=False) == other


@pytest.mark.parametrize(("asked_s", "length"), [(None, 180.0), (5.0, 5.0)])
def test_that_of_a_single_plan_is_the_one_that_it_names(
    asked_s: float | None, length: float
) -> None:
    lease = Lease(asked_s)
    assert lease.is_for(180.0, is_live=False)
    assert lease.length_s == length
