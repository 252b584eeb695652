"""The points of a metric and its learning history, whatever order the points come in."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.planner import copied
from dltools.plan.signals.metric_series import LearningHistory, Series

Point = tuple[int, float, int | None]


def series(*points: Point) -> Series:
    made = Series()
    for one in points:
        made.add(*one)
    return made


def points_of(made: Series) -> list[Point]:
    return list(zip(made.times, made.values, made.steps, strict=True))


# Points


def test_points_are_kept_in_order_of_time() -> None:
    made = series((2, 0.5, 20), (1, 1.0, 10), (3, 0.25, None))
    assert points_of(made) == [(1, 1.0, 10), (2, 0.5, 20), (3, 0.25, None)]


def test_a_point_that_was_reported_already_is_not_taken_again() -> None:
    made = series((1, 1.0, 10), (2, math.nan, None))
    assert not made.add(1, 1.0, 10)
    assert not made.add(2, math.nan, None)  # NaN is the same as NaN
    assert len(made.times) == 2


@pytest.mark.parametrize("other", [(1, 2.0, 10), (1, 1.0, 11), (1, 1.0, None), (1, -0.0, 0)])
def test_another_point_of_the_same_time_is_taken_after_it(other) -> None:
    made = series((1, 1.0, 10), (1, 0.0, 0), (2, 0.5, 20))
    assert made.add(*other)
    assert points_of(made)[2] == other


def test_the_peak_is_the_largest_finite_size_and_stays() -> None:
    made = series((1, -4.0, None), (2, math.inf, None), (3, math.nan, None), (4, 3.0, None))
    assert made.peak == 4.0
    made.forget(4)
    assert (made.values, made.peak) == ([3.0], 4.0)
    small = Series()
    small.extend(([1, 2], [0.5, -0.25], [None, None]))
    assert small.peak == 0.5


def test_the_first_the_least_and_the_greatest_finite_value_stay() -> None:
    made = series((1, math.nan, None), (2, -4.0, None), (3, math.inf, None), (4, 3.0, None))
    made.forget(4)
    assert (made.first, made.low, made.high, made.count) == (-4.0, -4.0, 3.0, 2)
    never = series((1, math.nan, None), (2, math.inf, None))
    assert (never.first, never.count, never.peak) == (None, 0, 0.0)


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        ([1.0, math.nan], 1),
        ([math.nan, 1.0], 0),
        ([1.0, math.inf, math.nan], 2),
        ([1.0, math.nan, math.nan, -math.inf], 3),
        ([1.0] + [math.nan] * 10, 3),  # no more is remembered
        ([math.nan] * 3 + [1.0, math.nan], 1),
    ],
)
def test_the_newest_points_without_a_finite_value_are_counted(values, lost) -> None:
    for cut in range(len(values) + 1):
        made = Series()
        for low, high in ((0, cut), (cut, len(values))):
            if low < high:
                made.extend((list(range(low, high)), values[low:high], [None] * (high - low)))
        assert (made.not_finite, made.is_lost) == (lost, lost == 3)


def test_a_late_point_counts_where_it_belongs() -> None:
    made = series((1, 1.0, None), (5, math.nan, None), (9, math.nan, None))
    made.add(7, math.nan, None)
    assert made.is_lost
    made.add(6, 1.0, None)
    assert made.not_finite == 2
    made.add(2, math.nan, None)  # before one that is finite
    assert made.not_finite == 2


def test_of_points_that_overlap_the_new_ones_are_named() -> None:
    made = series((1, 1.0, None), (3, 3.0, None))
    assert made.extend(([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], [None] * 4)) == [1, 3]
    assert made.values == [1.0, 2.0, 3.0, 4.0]
    assert made.extend(([5, 6], [-5.0, math.inf], [None, 7])) == range(2)  # all are
    assert points_of(made)[4:] == [(5, -5.0, None), (6, math.inf, 7)]
    assert made.peak == 5.0
    assert Series().extend(([1, 1, 1], [1.0, 1.0, 2.0], [None] * 3)) == [0, 2]


@pytest.mark.parametrize(("time", "new"), [(0, [0]), (1, []), (2, [0])])
def test_one_point_may_be_late_known_or_new(time, new) -> None:
    made = series((1, 1.0, None))
    assert list(made.extend(([time], [1.0], [None]))) == new


_points = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([1.0, -2.0, math.nan, math.inf]),
        st.sampled_from([None, 1, 2]),
    ),
    max_size=12,
)


@given(points=_points, cut=st.integers(0, 12))
def test_batches_of_points_give_what_single_points_give(points, cut) -> None:
    made = Series()
    for batch in (points[:cut], points[cut:]):
        if batch:
            ordered = sorted(batch, key=lambda point: point[0])
            times, values, steps = map(list, zip(*ordered, strict=True))
            made.extend((times, values, steps))  # type: ignore[arg-type]
    singly = series(
        *sorted(points[:cut], key=lambda p: p[0]), *sorted(points[cut:], key=lambda p: p[0])
    )
    assert repr(made) == repr(singly)
    assert made.times == sorted(made.times)
    assert len(set(map(repr, points_of(made)))) == len(made.times)


@pytest.mark.parametrize(
    ("after", "until", "values"),
    [(0, 3, [1, 2, 3]), (1, 2, [2]), (1, 1, []), (3, 9, []), (-5, 0, []), (-5, 1, [1])],
)
def test_a_window_holds_its_end_and_not_its_beginning(after, until, values) -> None:
    made = series((1, 1.0, None), (2, 2.0, None), (3, 3.0, None))
    assert made.window(after, until) == values


@pytest.mark.parametrize(
    ("until", "values"), [(0, [1, 2, 3]), (1, [2, 3]), (2, [3]), (3, [3]), (99, [3])]
)
def test_forgetting_keeps_the_newest_point(until, values) -> None:
    made = series((1, 1.0, 10), (2, 2.0, 20), (3, 3.0, 30))
    made.forget(until)
    assert made.values == values
    assert len(made.times) == len(made.steps) == len(values)


def test_nothing_can_be_forgotten_of_an_empty_series() -> None:
    made = Series()
    made.forget(9)
    assert made == Series()


def test_a_clone_shares_nothing_that_changes() -> None:
    made = series((1, 1.0, None))
    made.learning = LearningHistory([1.0], [1.0], seen=1)
    twin = copied(made)
    assert twin == made
    twin.add(2, 2.0, None)
    assert twin.learning is not None
    twin.learning.extend(float, ([2], [2.0], [None]))
    assert (made.values, made.learning) == ([1.0], LearningHistory([1.0], [1.0], seen=1))


# Learning histories


def learned(n: int, steps: list[int | None] | None = None, cut: int = 0) -> LearningHistory:
    """The history of n points whose values are their numbers, in two pieces."""
    made = LearningHistory()
    times, values = list(range(n)), [float(i) for i in range(n)]
    all_steps = steps or [None] * n
    for span in (slice(0, cut), slice(cut, n)):
        made.extend(float, (times[span], values[span], all_steps[span]))
    return made


@pytest.mark.parametrize("n", [0, 1, 200, 255, 256, 300, 511, 512, 513, 5000])
def test_a_history_stays_short_and_even(n) -> None:
    made = learned(n)
    assert made.seen == n
    assert len(made.values) < 256
    assert made.works == made.values == [float(i) for i in range(0, n, made.stride)]


@given(st.integers(0, 1200), st.data())
def test_a_history_is_the_same_however_it_was_cut(n, data) -> None:
    assert learned(n, cut=data.draw(st.integers(0, n))) == learned(n)


def test_training_that_begins_anew_begins_a_new_history() -> None:
    steps: list[int | None] = [*range(10), *range(5)]
    made = learned(15, steps)
    assert made.values == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert made.seen == 5


def test_a_step_that_falls_a_little_does_not_begin_a_new_history() -> None:
    assert learned(3, [10, 20, 10]).values == [0.0, 1.0, 2.0]
    assert learned(3, [10, 21, 10]).values == [2.0]


def test_work_in_a_history_never_falls() -> None:
    made = LearningHistory()
    made.extend(lambda time: 10.0 - time, ([1, 2, 3], [1.0, 2.0, 3.0], [None] * 3))
    assert made.works == [9.0, 9.0, 9.0]
