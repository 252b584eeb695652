"""Panels with their time axes, names of rows, legends and series.

A panel answers one question. The modules beside this one make panels; `figure` joins them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from dltools.observations.container_records import Series, SeriesPoint
from dltools.report.timelines import Run
from dltools.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: its kind and title, its height in inches, and the function that draws it."""

    kind: str
    title: str
    height: float
    draw: Callable[[Axes], None]


@dataclass(frozen=True, slots=True)
class TimeFrame:
    """A run, and the length of its time axis (s), which is the same for all runs of a plot.

    `names_run`: whether titles name the run, because the plot shows several; `colour`: the run's.
    """

    run: Run
    span_s: float
    names_run: bool
    colour: str = "#999999"

    def title(self, text: str) -> str:
        """Return a panel's title."""
        return f"{text}: {self.run.label}" if self.names_run else text


_MOST_NAMES = 40
_LONGEST_NAME = 24
_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def safe(text: str) -> str:
    """Return a text that matplotlib does not take for a formula, and that is safe in a comment of
    SVG."""
    return printable(text).replace("$", r"\$")


def short(name: str) -> str:
    """Return a name that fits beside an axis. A long one is cut in the middle, because the ends of
    names differ most."""
    half = (_LONGEST_NAME - 3) // 2
    return safe(name if len(name) <= _LONGEST_NAME else f"{name[:half]}...{name[-half:]}")


def name_rows(ax: Axes, names: list[str]) -> None:
    """Name the rows of an axis; if there are too many, write only their number."""
    if len(names) > _MOST_NAMES:
        ax.set_yticks([])
        ax.set_ylabel(f"{len(names)} jobs")
        return
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.tick_params(axis="y", length=0)


_BELOW_INCHES = 0.42
"""Distance from the axes to the legend, with room for the ticks and the name of the axis."""
_MOST_COLUMNS = 6
_HANDLE_LETTERS, _LETTERS_IN_AN_INCH = 9, 13.0
"""Width of a legend's line sample with its gaps, in letters, and letters of its text per inch."""


def legend(ax: Axes, **options: Any) -> None:
    """Add a legend below the axes, where it costs no width. Without entries there is no legend."""
    from matplotlib.transforms import ScaledTranslation

    figure = cast("Figure", ax.figure)
    given = options.get("handles")
    labels = (
        ax.get_legend_handles_labels()[1] if given is None else [mark.get_label() for mark in given]
    )
    if not labels:
        return
    room = (figure.get_figwidth() - 1.5) * _LETTERS_IN_AN_INCH
    columns = round(room // (max(map(len, labels)) + _HANDLE_LETTERS))
    columns = max(1, min(columns, _MOST_COLUMNS, len(labels)))
    down = ScaledTranslation(0, -_BELOW_INCHES, figure.dpi_scale_trans)
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + down,
        borderaxespad=0.0,
        frameon=False,
        ncols=columns,
        **options,
    )


_LINE_INCHES = 0.19


def legend_inches(ax: Axes) -> float:
    """Return the height of the legend below the axes (inches), 0 without one."""
    box = ax.get_legend()
    if box is None:
        return 0.0
    columns: int = max(1, box._ncols)  # type: ignore[attr-defined]
    lines = -(-len(box.get_texts()) // columns)
    return lines * _LINE_INCHES + 0.05


def clock(ax: Axes, end: float) -> None:
    """Make the x axis show time, from 0 to `end` seconds, in a suitable unit."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    end = end or 1.0
    unit, name = next((pair for pair in _UNITS if end >= 3 * pair[0]), _UNITS[-1])
    ax.set_xlim(0, end * 1.02)
    ticks = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0, end / unit)
    ax.set_xticks([tick * unit for tick in ticks if tick * unit <= end * 1.02])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
    ax.set_xlabel(f"time, {name}")


_MOST_POINTS = 1000


def thinned(series: Series, most: int = _MOST_POINTS) -> Series:
    """Return a series of at most `most` points: means of neighbouring points, at the time of the
    last one."""
    size = -(-len(series) // most)
    if size <= 1:
        return series
    parts = (series[at : at + size] for at in range(0, len(series), size))
    return [SeriesPoint(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def changes(series: Series) -> Series:
    """Return the points at which the value of a step function changes, and its last point."""
    last = len(series) - 1
    series_points = [
        point
        for at, point in enumerate(series)
        if at in (0, last) or not _is_same(point[1], series[at - 1][1])
    ]
    return thinned(series_points)


def _is_same(value: float, other: float) -> bool:
    return value == other or (math.isnan(value) and math.isnan(other))


def area(series: Series) -> float:
    """Return the sum of a series of rates over time."""
    return sum(value * (time - before) for (before, _), (time, value) in pairwise(series))
