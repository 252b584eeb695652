"""Paces on CPUs and on GPUs, worked by hand."""

import pytest

from dltools.notation.times import MICRO
from dltools.plan.signals.paces import Mark, Pace, Place

START = Pace("loss", Mark(0, 0.0), Mark(0, 0.0), used=Mark(0, 0.0))


def reported(pace: Pace, *points: tuple[float, float], step: int | None = None) -> Pace:
    """The pace after reports at these times (s), by which the job had these CPU seconds."""
    works = {round(time * MICRO): work for time, work in points}
    return pace.reported(list(works), [step] * len(works), works.__getitem__)


def measured(pace: Pace, at_s: float, work: float) -> Pace:
    return pace.measured(round(at_s * MICRO), work)


def alone() -> Pace:
    """A job of two threads that reports every second, alone on two CPUs."""
    pace = reported(START, *((second, 2.0 * second) for second in range(1, 6)))
    return measured(pace, 5.0, 10.0)


def test_a_window_runs_from_a_report_to_a_later_one() -> None:
    pace = alone()
    assert (pace.best, pace.peak) == (0.5, 2.0)  # 4 reports in 8 CPU s, in 4 s
    assert pace.stride / pace.best == 2.0
    assert (pace.shared, pace.ahead) == (None, None)


def test_a_short_window_waits_for_more() -> None:
    pace = reported(START, (1.0, 1.0), (2.0, 2.0))
    assert measured(pace, 2.0, 2.0).begin == pace.begin
    assert measured(reported(pace, (5.0, 5.0)), 5.0, 5.0).best == 0.5  # 2 reports in 4 CPU s


def test_progress_counts_in_steps_where_the_job_names_them() -> None:
    pace = reported(START, (1.0, 2.0), step=100)
    pace = measured(reported(pace, (3.0, 6.0), step=300), 3.0, 6.0)
    assert (pace.best, pace.stride) == (50.0, 200.0)
    again = measured(reported(pace, (4.0, 8.0), step=10), 4.0, 8.0)  # training began anew
    assert (again.begin, again.best, again.stride) == (again.newest, pace.best, pace.stride)


def test_a_job_that_others_hold_back_shows_what_it_keeps() -> None:
    pace = alone().in_place(Place.SHARES, 5 * MICRO, 10.0)
    pace = reported(pace, (7.0, 12.0), (9.0, 14.0), (11.0, 16.0))  # 2 CPU s for each, as ever
    assert measured(pace, 11.0, 16.0).shared == 0.5
    slow = reported(alone().in_place(Place.SHARES, 5 * MICRO, 10.0), (10.0, 15.0), (20.0, 25.0))
    slow = measured(slow, 20.0, 25.0)  # one CPU, 10 CPU s for a report
    assert slow.shared == 0.1
    assert slow.best == 0.5


def test_a_job_with_all_its_cpus_shows_nothing_of_sharing() -> None:
    pace = alone().in_place(Place.SHARES, 5 * MICRO, 10.0)
    pace = measured(reported(pace, (6.0, 12.0), (8.0, 16.0)), 8.0, 16.0)
    assert (pace.begin, pace.shared) == (pace.newest, None)


def test_the_first_job_shows_what_those_that_wait_leave_it() -> None:
    pace = alone().in_place(Place.FIRST, 5 * MICRO, 10.0)
    pace = measured(reported(pace, (7.0, 14.0), (9.0, 18.0)), 9.0, 18.0)
    assert (pace.ahead, pace.shared) == (0.25, None)
    pace = measured(reported(pace, (10.0, 20.0), (11.0, 22.0)), 11.0, 22.0)
    assert pace.ahead == (0.25 + 0.5) / 2  # the newest counts for half


def test_an_overdue_report_bounds_the_rate() -> None:
    pace = alone().in_place(Place.SHARES, 5 * MICRO, 10.0)
    assert measured(pace, 7.5, 12.5).shared is None  # not overdue yet
    assert measured(pace, 9.0, 14.0).shared == 0.25  # 4 CPU s, and not one report


@pytest.mark.parametrize("place", [Place.TURN, None])
def test_turns_and_peace_show_the_best_rate_alone(place) -> None:
    pace = alone().in_place(Place.SHARES, 5 * MICRO, 10.0).in_place(place, 5 * MICRO, 10.0)
    pace = measured(reported(pace, (6.0, 12.0), (7.0, 13.0), (10.0, 16.0)), 10.0, 16.0)
    assert (pace.best, pace.shared, pace.ahead) == (0.5, None, None)


def test_a_window_does_not_reach_across_roles() -> None:
    pace = reported(alone().in_place(Place.FIRST, 5 * MICRO, 10.0), (6.0, 12.0))
    pace = pace.in_place(Place.WAITS, 7 * MICRO, 14.0)
    pace = reported(pace, (30.0, 16.0), (60.0, 18.0), (90.0, 20.0))
    assert measured(pace, 90.0, 20.0).shared == 0.5  # 2 reports in 4 CPU s since 30 s


def test_the_same_report_counts_once() -> None:
    pace = reported(START, (1.0, 2.0))
    assert reported(pace, (1.0, 2.0)) == pace


def test_a_job_that_could_have_more_than_one_cpu_and_does_not_has_one_busy_thread() -> None:
    pace = reported(START, *((second, float(second)) for second in range(1, 8)))
    assert measured(pace, 7.0, 7.0).has_one_busy_thread
    assert not alone().has_one_busy_thread
    held_back = reported(START.in_place(Place.SHARES, 0, 0.0), (1.0, 1.0), (7.0, 7.0))
    assert not measured(held_back, 7.0, 7.0).has_one_busy_thread


def test_two_cpu_seconds_with_a_report_show_how_many_threads_are_busy() -> None:
    """A job has 5 s alone before another one comes: no time for a window between reports."""
    pace = measured(reported(START, (1.0, 1.0)), 1.0, 1.0)
    pace = measured(reported(pace, (2.0, 2.0)), 2.5, 2.5)
    assert pace.has_one_busy_thread
    assert not measured(pace, 3.5, 4.5).has_one_busy_thread  # it has had two CPUs
    silent = measured(measured(START, 1.0, 1.0), 3.0, 3.0)
    assert not silent.has_one_busy_thread  # it may still begin its threads
    waits = measured(START.in_place(Place.WAITS, 0, 0.0), 1.0, 1.0)
    assert not measured(reported(waits, (2.0, 2.0)), 4.0, 4.0).has_one_busy_thread


def test_a_role_that_changes_leaves_no_use_of_cpu_to_the_next() -> None:
    pace = measured(reported(START, (1.0, 1.0)), 1.0, 1.0)
    pace = pace.in_place(Place.FIRST, 4 * MICRO, 2.0)  # it waited meanwhile
    pace = measured(reported(pace, (5.0, 3.0), (6.0, 4.0)), 6.0, 4.0)
    assert (pace.peak, pace.free_cpu_s, pace.free_reports) == (1.0, 3.0, 2 + 1)


def test_one_busy_thread_that_slows_down_beside_others_must_show_it_again() -> None:
    """Compiling takes one thread, training two: two such jobs get one CPU each, and spin."""
    pace = reported(START, *((second, float(second)) for second in range(1, 8)))
    pace = measured(pace, 7.0, 7.0)
    assert pace.has_one_busy_thread
    steady = reported(pace, *((second, float(second)) for second in range(8, 13)))
    assert measured(steady, 12.0, 12.0).has_one_busy_thread
    slow = measured(reported(pace, (12.0, 12.0)), 12.0, 12.0)  # a report in 5 CPU s, not five
    assert not slow.has_one_busy_thread
    first = slow.in_place(Place.FIRST, 12 * MICRO, 12.0)
    assert not measured(reported(first, (13.0, 14.0)), 14.0, 16.0).has_one_busy_thread
    assert measured(reported(first, (13.0, 13.0)), 14.0, 14.0).has_one_busy_thread
