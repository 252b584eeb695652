"""One panel of a plot, and what panels are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dltools.report.run import Run

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
