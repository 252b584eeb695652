"""How pictures look: what is told apart without colour, and axes of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dltools.report.run import Series
from dltools.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 40

# Okabe and Ito's colours, told apart by the colour-blind, in an order in which neighbours differ in
# grey too; and dashes, for print.
COLOURS = ("#0072B2", "#E69F00", "#000000", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#777777")
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), "-")
FILLS = ("#2166ac", "#f4a582", "#92c5de", "#e0e0e0", "#b2182b", "#d9f0d3")
HATCHES = ("", "///", "...", "", "xxx", "\\\\\\")
GREY = "#d4d4d4"

# Who is to go first is dark, who makes room is light.
_DARK, _MIDDLE, _LIGHT = ("#08519c", ""), ("#6baed6", "///"), ("#deebf7", "...")
_LOOKS = {
    "NL": _DARK, "WL": _MIDDLE, "CL": _LIGHT, "PC": _DARK, "WC": _MIDDLE, "CC": _LIGHT,
    "P1": _DARK, "P2": _MIDDLE, "P3": _LIGHT, "B": _DARK, "S": _MIDDLE, "G": _LIGHT,
    "known": _DARK, "new": _MIDDLE, "endless": _LIGHT,
}  # fmt: skip
_WORDS = {
    "NL": "NL growing", "WL": "WL watching", "CL": "CL completing", "PC": "PC progressing",
    "WC": "WC watching", "CC": "CC converged", "P1": "P1 before the first target",
    "P2": "P2 before the last", "P3": "P3 past its targets", "B": "B under-performing",
    "S": "S satisfied", "G": "G over-achieving",
}  # fmt: skip


def stretches(
    classes: Sequence[tuple[float, str]], begin: float, end: float
) -> list[tuple[float, float, str]]:
    """Return (from, to, class) over a job's life; "" before the first class is known."""
    found: list[tuple[float, float, str]] = []
    since, now = begin, ""
    for time, job_class in classes:
        time = min(max(time, begin), end)
        if time > since:
            found.append((since, time, now))
        since, now = time, job_class
    if end > since or not found:
        found.append((since, end, now))
    return found


def look(job_class: str, used: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """Return fill and hatch of a class; the unknown take what is free, in order."""
    if not job_class:
        return GREY, ""
    if job_class not in used:
        spare = [(fill, hatch) for fill, hatch in zip(FILLS, HATCHES, strict=True)]
        used[job_class] = _LOOKS.get(job_class) or spare[len(used) % len(spare)]
    return used[job_class]


def mark(ax: Axes, place: int, times: Sequence[float | None], shapes: Sequence[str]) -> None:
    """Mark moments of a job."""
    for time, shape in zip(times, shapes, strict=True):
        if time is not None:
            ax.plot(time, place, shape, color="#ffffff", markeredgecolor="#000000", markersize=7)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of an axis, or say how many there are."""
    if len(names) > _MOST_NAMED:
        ax.set_yticks([])
        ax.set_ylabel(f"{len(names)} jobs")
        return
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.tick_params(axis="y", length=0)


def safe(text: str) -> str:
    """Return a text in which matplotlib finds no formula, and SVG's comments no escapes."""
    return printable(text).replace("$", r"\$")


def short(name: str) -> str:
    """Return a name that fits beside an axis."""
    return safe(name if len(name) <= 24 else f"{name[:21]}...")


def class_legend(
    ax: Axes, used: Mapping[str, tuple[str, str]], *, jobs_have_targets: bool, moved: bool
) -> None:
    """Explain the classes and marks of a Gantt chart."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=fill, hatch=hatch, edgecolor="#444444", label=_WORDS.get(name, name))
        for name, (fill, hatch) in used.items()
    ]
    marks = [("^", "first target met"), ("*", "last target met")] if jobs_have_targets else []
    for shape, label in [*marks, *([(">", "migrated")] if moved else [])]:
        handles.append(Line2D([], [], marker=shape, linestyle="", color="#ffffff",
                              markeredgecolor="#000000", label=label))  # fmt: skip
    if handles:
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def legend(ax: Axes) -> None:
    """Explain the lines, beside them."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, handlelength=3)


def clock(ax: Axes, end: float) -> None:
    """Make the axis one of time, from 0, in a unit that suits."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    units = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
    unit, name = next((one for one in units if end >= 3 * one[0]), units[-1])
    ax.set_xlim(0, (end or 1.0) * 1.02)
    ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    ticks = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0, (end or 1.0) / unit)
    ax.set_xticks([tick * unit for tick in ticks if tick * unit <= (end or 1.0) * 1.02])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
    ax.set_xlabel(name)


def thinned(series: Series, most: int = 1000) -> Series:
    """Return a series of at most so many points: means of neighbours, at the last one's time."""
    size = -(-len(series) // most)
    if size <= 1:
        return series
    parts = (series[at : at + size] for at in range(0, len(series), size))
    return [(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def changes(series: Series) -> Series:
    """Return the points of a series of steps at which it changes, and its last."""
    found = [point for at, point in enumerate(series)
             if at in (0, len(series) - 1) or point[1] != series[at - 1][1]]  # fmt: skip
    return thinned(found)


def area(series: Series) -> float:
    """Return the sum of a series of rates over time."""
    return sum(value * (time - before) for (before, _), (time, value) in pairwise(series))
