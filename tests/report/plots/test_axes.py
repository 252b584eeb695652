"""What panels share."""

from __future__ import annotations

import pytest

from dltools.report.plots.axes import clock, line_style, safe, short
from dltools.report.plots.compare import bar_style


def test_runs_look_different() -> None:
    assert len({str(line_style(number)) for number in range(64)}) == 64
    assert len({str(bar_style(number)) for number in range(18)}) == 18


def test_texts_are_no_formulas_and_fit() -> None:
    assert safe("a$b$") == r"a\$b\$"
    assert short("x" * 24) == "x" * 24
    assert short("x" * 25) == "x" * 10 + "..." + "x" * 10


@pytest.mark.parametrize(
    ("end", "unit"), [(0, "seconds"), (179, "seconds"), (180, "minutes"), (90_000, "hours"),
                      (300_000, "days")],
)  # fmt: skip
def test_time_has_a_unit_that_suits(end: float, unit: str) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    clock(axes, end)
    assert axes.get_xlabel() == unit
    assert axes.get_xlim()[0] == 0
    assert 2 <= len(axes.get_xticks()) <= 12
