"""A job's pace on its GPUs, worked by hand."""

from __future__ import annotations

import pytest

from dltools.notation.times import MICRO
from dltools.plan.policy.gpu_pace import GpuPace

OTHER = ("b@0",)


def reporting(
    pace: GpuPace, begin: float, end: float, every: float = 2.0, steps: float | None = 10.0
) -> GpuPace:
    """Report from a second on up to another; `steps`: per second, None for reports without any."""
    times = [begin + number * every for number in range(int((end - begin) / every) + 1)]
    return pace.reported(
        [round(time * MICRO) for time in times],
        [None if steps is None else round(begin * 1000 + steps * (time - begin)) for time in times],
    )


def alone(seconds: float = 60.0, **how: float | None) -> GpuPace:
    return reporting(GpuPace("loss").beside((), 0), 1.0, seconds, **how)  # type: ignore[arg-type]


def test_three_windows_of_ten_seconds_tell_the_rate_alone() -> None:
    assert alone(30.0).alone == 0
    assert alone(31.0).alone == pytest.approx(10.0)
    assert alone(60.0, steps=None).alone == pytest.approx(0.5)  # reports per second
    assert alone(400.0, every=60.0).alone == pytest.approx(10.0)  # a window from report to report


def test_what_is_kept_beside_others_is_a_part_of_the_rate_alone() -> None:
    found = reporting(alone().beside(OTHER, 60 * MICRO), 61.0, 89.0, steps=3.0)
    assert found.kept is None  # two windows
    found = reporting(alone().beside(OTHER, 60 * MICRO), 61.0, 101.0, steps=3.0)
    assert found.kept == pytest.approx(0.3)
    assert found.alone == pytest.approx(10.0)
    faster = reporting(alone().beside(OTHER, 60 * MICRO), 61.0, 101.0, steps=12.0)
    assert faster.kept == 1.0


def test_nothing_is_kept_of_an_unknown_rate_nor_alone() -> None:
    fresh = GpuPace("loss").beside(OTHER, 0)
    assert reporting(fresh, 1.0, 99.0).kept is None
    assert alone().kept is None


def test_a_window_does_not_reach_across_two_companies() -> None:
    found = reporting(alone().beside(OTHER, 60 * MICRO), 61.0, 101.0, steps=3.0)
    third = found.beside((*OTHER, "c@0"), 101 * MICRO)
    assert (third.rates, third.kept) == ((), None)
    assert reporting(third, 103.0, 143.0, steps=2.0).kept == pytest.approx(0.2)


def test_a_validation_is_one_slow_window_and_no_more() -> None:
    beside = reporting(alone().beside(OTHER, 60 * MICRO), 61.0, 101.0, steps=6.0)
    # No report for 70 s, then as before: the median of the newest windows does not move.
    later = [round((175 + 2 * n) * MICRO) for n in range(12)]
    found = beside.reported(later, [61241 + 12 * n for n in range(12)])
    assert min(found.rates) < 1
    assert found.kept == pytest.approx(0.6)


def test_nobody_is_followed_while_it_takes_turns() -> None:
    waits = alone().beside(None, 60 * MICRO)
    assert reporting(waits, 61.0, 99.0, steps=1.0) == waits


def test_late_points_steps_that_begin_anew_and_reports_without_a_step_do_no_harm() -> None:
    found = alone()
    assert found.reported([5 * MICRO], [1]) == found
    assert found.reported([70 * MICRO], [None]) == found
    anew = found.reported([70 * MICRO, 85 * MICRO], [0, 150])
    assert anew.rates[-1] == pytest.approx(10.0)


def test_reports_one_by_one_are_reports_at_once() -> None:
    times, steps = [round(t * 1.7 * MICRO) for t in range(1, 60)], [t * t for t in range(1, 60)]
    at_once = GpuPace("loss").beside((), 0).reported(times, steps)
    one_by_one = GpuPace("loss").beside((), 0)
    for time, step in zip(times, steps, strict=True):
        one_by_one = one_by_one.reported([time], [step])
    assert one_by_one == at_once
