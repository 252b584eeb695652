"""Panels of one run over time: what CPU each job was allowed and used, and what it reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dltools.observations.container_records import Series
from dltools.report.plots.axes import (
    Panel,
    TimeFrame,
    area,
    changes,
    clock,
    legend,
    line_style,
    safe,
    short,
    thinned,
)
from dltools.report.timelines import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_JOBS = 16
_ROW = 0.85  # of the distance between two rows


@dataclass(frozen=True, slots=True)
class _Rows:
    jobs: Sequence[tuple[str, Timeline]]
    most_cores: float
    span_s: float

    def draw(self, ax: Axes) -> None:
        rows = list(reversed(self.jobs))
        for base, (_, timeline) in enumerate(rows):
            self._draw_job(ax, base, timeline)
        ax.set_yticks([base + 0.4 for base in range(len(rows))], [short(name) for name, _ in rows])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.1, len(rows))
        clock(ax, self.span_s)

    def _draw_job(self, ax: Axes, base: int, timeline: Timeline) -> None:
        height = _ROW / self.most_cores
        if timeline.use:
            used = thinned(timeline.use)
            ax.fill_between(
                [time for time, _ in used],
                [base] * len(used),
                [base + height * cores for _, cores in used],
                step="pre",
                color="#9ecae1",
                linewidth=0,
            )
        if timeline.limit:
            steps = changes(timeline.limit)
            ax.step(
                [time for time, _ in steps],
                [base + height * cores for _, cores in steps],
                where="post",
                color="#000000",
                linewidth=1.1,
            )
        ax.axhline(base, color="#bbbbbb", linewidth=0.5, zorder=0)


def limits_panel(frame: TimeFrame) -> Panel | None:
    """Return the panel of the jobs of a run that used most, None where no CPU is known."""
    known = {name: line for name, line in frame.run.timelines.items() if line.limit or line.use}
    if not known:
        return None
    most = sorted(known, key=lambda name: -area(known[name].use))[:_MOST_JOBS]
    jobs = [(name, line) for name, line in known.items() if name in most]
    cores = [value for _, line in jobs for _, value in (*line.limit, *line.use)]
    top = max(cores, default=1.0)
    left_out = f", the {len(jobs)} of {len(known)} that used most" if len(jobs) < len(known) else ""
    title = f"CPU allowed (line) and used (area), 0 to {top:.3g} cores each{left_out}"
    draw = _Rows(jobs, top, frame.span_s).draw
    return Panel("limits", frame.title(title), 0.8 + 0.45 * len(jobs), draw)


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


def progress_panel(frame: TimeFrame) -> Panel | None:
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
