"""When rounds run: each change of the timer."""

from __future__ import annotations

import pytest
from helpers.histories import history

from dltools.notation.times import MICRO
from dltools.plan.policy.base import IntervalChange, Requirements
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.round_timer import RoundTimer

EVERY_10_S = Requirements(interval_s=10.0, longest_interval_s=40.0)
A, B = history(name="a"), history(name="b")
RUN_IDS = (A.run_id, B.run_id)


def test_a_new_timer_is_due() -> None:
    assert RoundTimer(None).is_due(0)
    assert RoundTimer(10.0).is_due(0)


def test_a_round_is_due_after_an_interval_less_a_twentieth() -> None:
    timer = RoundTimer(10.0, last=100 * MICRO)
    assert not timer.is_due(round(109.499_999 * MICRO))
    assert timer.is_due(round(109.5 * MICRO))


def test_without_an_interval_time_brings_no_round() -> None:
    assert not RoundTimer(None, last=0).is_due(10**6 * MICRO)


def test_the_same_jobs_in_any_order_change_nothing() -> None:
    timer = RoundTimer(20.0, 5, RUN_IDS)
    assert timer.with_jobs([B, A], EVERY_10_S) is timer


@pytest.mark.parametrize(
    "jobs",
    [[A], [], [A, B, history(name="c")], [A, history(name="b", arrived_s=3.0)]],
    ids=["left", "all left", "arrived", "restarted"],
)
def test_other_jobs_reset_the_interval_and_make_a_round_due(jobs: list[ContainerHistory]) -> None:
    timer = RoundTimer(20.0, 5, RUN_IDS).with_jobs(jobs, EVERY_10_S)
    assert (timer.interval_s, timer.last) == (10.0, None)
    assert len(timer.run_ids) == len(jobs)
    assert timer.is_due(6)


def test_an_interruption_makes_a_round_due_and_keeps_the_interval() -> None:
    timer = RoundTimer(20.0, 5, RUN_IDS).interrupted()
    assert timer == RoundTimer(20.0, None, RUN_IDS)
    assert timer.is_due(6)


@pytest.mark.parametrize(
    ("interval_s", "change", "longest_s", "after_s"),
    [
        (20.0, IntervalChange.KEEP, 40.0, 20.0),
        (20.0, IntervalChange.RESET, 40.0, 10.0),
        (20.0, IntervalChange.DOUBLE, 80.0, 40.0),
        (20.0, IntervalChange.DOUBLE, 30.0, 30.0),
        (20.0, IntervalChange.DOUBLE, 0.0, 20.0),  # never shorter than it was
        (None, IntervalChange.DOUBLE, 40.0, None),
        (None, IntervalChange.KEEP, 40.0, None),
    ],
)
def test_after_a_round_the_interval_is_kept_reset_or_doubled(
    interval_s: float | None, change: IntervalChange, longest_s: float, after_s: float | None
) -> None:
    required = Requirements(interval_s=10.0, longest_interval_s=longest_s)
    timer = RoundTimer(interval_s, None, RUN_IDS).after_round(7, change, required)
    assert timer == RoundTimer(after_s, 7, RUN_IDS)


@pytest.mark.parametrize(
    ("timer", "now_s", "wait_s"),
    [
        (RoundTimer(10.0, last=0), 0.0, 10.0),
        (RoundTimer(10.0, last=0), 4.0, 6.0),
        (RoundTimer(10.0, last=0), 12.0, 0.0),
        (RoundTimer(10.0), 4.0, 10.0),  # a round is due at the next sample
        (RoundTimer(None, last=0), 4.0, None),
        (RoundTimer(None), 4.0, None),
    ],
)
def test_the_wait_until_the_next_round(
    timer: RoundTimer, now_s: float, wait_s: float | None
) -> None:
    assert timer.wait_s(round(now_s * MICRO)) == wait_s
