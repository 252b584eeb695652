"""How far the simulator is off, and whether it puts arms into the order in which they are live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from runner import figures
from runner.figures import Figure, figure
from runner.measured import Measured

TIE = 0.05
"""Means that differ by less, as a part of the larger, are in no order."""

_FAR = 0.35
"""From which error on a row is named."""


@dataclass(frozen=True)
class _Row:
    """Mean completion times (s) under an arm."""

    arm: str
    live: Figure
    simulated: Figure

    @property
    def error(self) -> float:
        """The error of the simulated mean, as a part of the live one."""
        return abs(self.simulated.mean / self.live.mean - 1)


def compared(lists: Sequence[Measured]) -> str:
    """Return the section of RESULTS.md, "" where nothing was simulated."""
    by_list = {one.name: _rows(one) for one in lists if not one.serves}
    named = [
        (f"{row.arm} of {name}", row)
        for name, rows in by_list.items()
        for row in rows
        if row.arm != "noop"
    ]
    if not named:
        return ""
    errors = [row.error for _, row in named]
    far = [
        f"{name} ({row.error:.0%}; live {_span(row.live)} s, simulated {_span(row.simulated)} s)"
        for name, row in named
        if row.error > _FAR
    ]
    swapped = [
        f"{one.arm} and {other.arm} of {name}"
        for name, rows in by_list.items()
        for one, other in combinations(rows, 2)
        if _is_swapped(one, other)
    ]
    return (
        "## The simulator\n\n"
        f"Error of the mean completion time over {len(errors)} rows, without noop, to which spin "
        f"is fitted: median {median(errors):.0%}, worst {max(errors):.0%}.\n"
        f"Rows with an error over {_FAR:.0%}: {', '.join(far) or 'none'}.\n"
        "Arms in another order than live, where neither the live means nor the simulated ones "
        f"overlap: {', '.join(swapped) or 'none'}.\n"
    )


def _rows(measured: Measured) -> list[_Row]:
    found = []
    for arm in measured.arms:
        live = figure([figures.mean_completion(run) for run in measured.of_arm(arm)])
        simulated = figures.simulated_mean(measured, arm)
        if live is not None and simulated is not None:
            found.append(_Row(arm, live, simulated))
    return found


def _is_swapped(one: _Row, other: _Row) -> bool:
    live, simulated = _order(one.live, other.live), _order(one.simulated, other.simulated)
    return live * simulated < 0


def _order(one: Figure, other: Figure) -> int:
    """Return -1 where one is less than the other in all its values, 1 where it is more, else 0."""
    tie = TIE * max(one.mean, other.mean)
    if one.most < other.least - tie:
        return -1
    return 1 if one.least > other.most + tie else 0


def _span(found: Figure) -> str:
    least, most = f"{found.least:.1f}", f"{found.most:.1f}"
    return least if least == most else f"{least} to {most}"
