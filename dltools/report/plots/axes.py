"""What panels share: colours and dashes, axes of time, names of rows, legends, series made ready.

A panel answers one question. The modules beside this one make panels; `figure` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dltools.observations.container_records import Series, SeriesPoint
from dltools.report.timelines import Run
from dltools.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: its kind and title, its height in inches, and what draws it."""

    kind: str
    title: str
    height: float
    draw: Callable[[Axes], None]


@dataclass(frozen=True, slots=True)
class TimeFrame:
    """A run, and the seconds that its time axis shows: the same for all runs of a plot.

    `names_run`: titles name the run, because the plot shows several.
    """

    run: Run
    span_s: float
    names_run: bool

    def title(self, text: str) -> str:
        """Return a panel's title."""
        return f"{text}: {self.run.label}" if self.names_run else text


_MOST_NAMES = 40
_LONGEST_NAME = 24
_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))

# Okabe and Ito's colours, told apart by the colour-blind, in an order in which neighbours differ in
# grey too; and dashes, for print.
_COLOURS = ("#0072B2", "#E69F00", "#000000", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#777777")
_DASHES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1)),
    (0, (1, 1)),
    (0, (3, 1, 1, 1)),
    (0, (8, 2)),
)


def line_style(number: int) -> dict[str, Any]:
    """Return the colour and dashes of the line of this number, from 0. 64 differ."""
    place = number + number // len(_COLOURS)
    return {"color": _COLOURS[number % len(_COLOURS)], "linestyle": _DASHES[place % len(_DASHES)]}


def safe(text: str) -> str:
    """Return a text in which matplotlib finds no formula, and SVG's comments no escapes."""
    return printable(text).replace("$", r"\$")


def short(name: str) -> str:
    """Return a name that fits beside an axis, cut in its middle: ends of names differ most."""
    half = (_LONGEST_NAME - 3) // 2
    return safe(name if len(name) <= _LONGEST_NAME else f"{name[:half]}...{name[-half:]}")


def name_rows(ax: Axes, names: list[str]) -> None:
    """Name the rows of an axis, or say how many there are."""
    if len(names) > _MOST_NAMES:
        ax.set_yticks([])
        ax.set_ylabel(f"{len(names)} jobs")
        return
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.tick_params(axis="y", length=0)


def legend(ax: Axes, **options: Any) -> None:
    """Add a legend beside the axes."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, **options)


def clock(ax: Axes, end: float) -> None:
    """Make the axis one of time, from 0 to `end` seconds, in a unit that suits."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    end = end or 1.0
    unit, name = next((one for one in _UNITS if end >= 3 * one[0]), _UNITS[-1])
    ax.set_xlim(0, end * 1.02)
    ticks = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0, end / unit)
    ax.set_xticks([tick * unit for tick in ticks if tick * unit <= end * 1.02])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
    ax.set_xlabel(name)


_MOST_POINTS = 1000


def thinned(series: Series, most: int = _MOST_POINTS) -> Series:
    """Return a series of at most so many points: means of neighbours, at the last one's time."""
    size = -(-len(series) // most)
    if size <= 1:
        return series
    parts = (series[at : at + size] for at in range(0, len(series), size))
    return [SeriesPoint(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def changes(series: Series) -> Series:
    """Return the points of a series of steps at which its value changes, and its last point."""
    last = len(series) - 1
    found = [
        point for at, point in enumerate(series) if at in (0, last) or point[1] != series[at - 1][1]
    ]
    return thinned(found)


def area(series: Series) -> float:
    """Return the sum of a series of rates over time."""
    return sum(value * (time - before) for (before, _), (time, value) in pairwise(series))
