"""The panel of progress: each job's metric as a fraction of its largest value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dltools.observations.containers import Series
from dltools.report.plots.axes import clock, legend, line_style, safe, short
from dltools.report.plots.panel import Panel, TimeFrame
from dltools.report.plots.series import thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class _Line:
    """A job's metric. What it reported before the run began is left out."""

    job: str
    metric: str
    points: Series
    has_diverged: bool

    @property
    def label(self) -> str:
        """What the legend says of it."""
        if not self.has_diverged:
            return f"{self.job} {self.metric}"
        return f"{self.job} {self.metric}{', then NaN' if self.is_drawn else ': NaN'}"

    @property
    def is_drawn(self) -> bool:
        """Whether it has enough points for a line."""
        return len(self.points) > 1


@dataclass(frozen=True, slots=True)
class _Lines:
    drawn: Sequence[_Line]
    lost: Sequence[_Line]
    span_s: float

    def draw(self, ax: Axes) -> None:
        for number, line in enumerate(self.drawn):
            peak = max(abs(value) for _, value in line.points) or 1.0
            points = thinned(line.points)
            ax.plot(
                [time for time, _ in points],
                [value / peak for _, value in points],
                linewidth=1.4,
                label=safe(line.label),
                **line_style(number),
            )
        for line in self.lost:
            ax.plot([], [], " ", label=safe(line.label))
        ax.set_ylabel("fraction of its largest value")
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        clock(ax, self.span_s)
        legend(ax, handlelength=3)


def panel(frame: TimeFrame) -> Panel | None:
    """Return the panel of the jobs that reported most, None where no job reported two values."""
    lines = [
        _Line(
            short(name),
            line.metric,
            [point for point in line.progress if point[0] >= 0],
            line.has_diverged,
        )
        for name, line in frame.run.timelines.items()
        if line.metric
    ]
    known = [line for line in lines if line.is_drawn]
    if not known:
        return None
    lost = [line for line in lines if line.has_diverged and not line.is_drawn]
    longest = sorted(known, key=lambda line: -len(line.points))[:_MOST_LINES]
    drawn = [line for line in known if line in longest]
    left_out = f", {len(drawn)} of {len(known)} jobs" if len(drawn) < len(known) else ""
    draw = _Lines(drawn, lost, frame.span_s).draw
    return Panel("progress", frame.title(f"Progress{left_out}"), 2.8, draw)
