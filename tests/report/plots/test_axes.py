"""What panels share, and series made ready to be drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.container_records import Series, SeriesPoint
from dltools.plan.policy import registry
from dltools.report.plots.axes import area, changes, clock, safe, short, thinned
from dltools.report.plots.styles import line_style, run_colours


def test_lines_look_different() -> None:
    assert len({str(line_style(number)) for number in range(64)}) == 64


def test_a_policy_has_one_colour_wherever_it_stands() -> None:
    among = run_colours(["noop", "fair", "night/srtf", "srtf-rotate", "other"])
    assert {among["night/srtf"], among["srtf-rotate"]} == {run_colours(["srtf"])["srtf"]}
    assert len(set(among.values())) == 4


def test_runs_of_all_policies_and_others_look_different() -> None:
    names = [*registry.policies([]), "monday", "tuesday", "before", "after"]
    assert len(set(run_colours(names).values())) == len(names)


def test_texts_are_no_formulas_and_fit() -> None:
    assert safe("a$b$") == r"a\$b\$"
    assert short("x" * 24) == "x" * 24
    assert short("x" * 25) == "x" * 10 + "..." + "x" * 10


@pytest.mark.parametrize(
    ("end", "unit"),
    [(0, "seconds"), (179, "seconds"), (180, "minutes"), (90_000, "hours"), (300_000, "days")],
)
def test_time_has_a_unit_that_suits(end, unit) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    clock(axes, end)
    assert axes.get_xlabel() == f"time, {unit}"
    assert axes.get_xlim()[0] == 0
    assert 2 <= len(axes.get_xticks()) <= 12


def series(*points: tuple[float, float]) -> Series:
    return [SeriesPoint(time, value) for time, value in points]


@given(st.lists(st.floats(-1e6, 1e6), max_size=300), st.integers(1, 50))
def test_thinned_series_keep_their_span_and_mean(values, most) -> None:
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
    nan = float("nan")
    gone = series((0, nan), (1, nan), (2, nan), (3, 2), (4, 2))
    assert [point.time for point in changes(gone)] == [0, 3, 4]


def test_an_area_is_a_rate_times_the_time_up_to_each_point() -> None:
    assert area(series((0, 9), (10, 1), (15, 2))) == pytest.approx(10 * 1 + 5 * 2)
    assert area([]) == 0
