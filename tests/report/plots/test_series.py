"""Series made ready to be drawn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.containers import Series, SeriesPoint
from dltools.report.plots.series import area, changes, thinned


def series(*points: tuple[float, float]) -> Series:
    return [SeriesPoint(time, value) for time, value in points]


@given(st.lists(st.floats(-1e6, 1e6), max_size=300), st.integers(1, 50))
def test_thinned_series_keep_their_span_and_mean(values: list[float], most: int) -> None:
    whole = series(*((float(time), value) for time, value in enumerate(values)))
    found = thinned(whole, most)
    assert len(found) <= most or len(whole) <= most
    if whole:
        assert found[-1].time == whole[-1].time
        assert min(values) - 1e-6 <= min(point.value for point in found)
        assert max(point.value for point in found) <= max(values) + 1e-6


def test_steps_keep_what_changes() -> None:
    steps = series((0, 1), (1, 1), (2, 2), (3, 2), (4, 2))
    assert changes(steps) == [(0, 1), (2, 2), (4, 2)]


def test_an_area_is_a_rate_times_the_time_up_to_each_point() -> None:
    assert area(series((0, 9), (10, 1), (15, 2))) == pytest.approx(10 * 1 + 5 * 2)
    assert area([]) == 0
