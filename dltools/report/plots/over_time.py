"""Panels of one run over time: the CPUs that each job could use and used, and its reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.observations import judging_metric, metric_names
from dltools.observations.container_records import Series, SeriesPoint
from dltools.report.plots.axes import (
    Panel,
    TimeFrame,
    area,
    changes,
    clock,
    legend,
    safe,
    short,
    thinned,
)
from dltools.report.plots.styles import line_style
from dltools.report.timelines import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_JOBS = 16
_ROW = 0.85  # of the distance between two rows


def limits_panel(frame: TimeFrame) -> Panel | None:
    """Return the panel of the CPUs of the jobs that used most, None if no CPU use is known."""
    lines = {name: line for name, line in frame.run.timelines.items() if line.limit or line.use}
    if not lines:
        return None
    most = sorted(lines, key=lambda name: -area(lines[name].use))[:_MOST_JOBS]
    jobs = [(name, line) for name, line in lines.items() if name in most]
    cores = [
        value for _, line in jobs for _, value in (*line.bound, *line.use) if not math.isnan(value)
    ]
    top = max(cores, default=0.0) or 1.0
    left_out = f", the {len(jobs)} of {len(lines)} that used most" if len(jobs) < len(lines) else ""
    limited = "limit (line), " if any(_has_limit(line) for _, line in jobs) else ""
    title = f"CPUs: {limited}used (area), 0 to {top:.3g} each{left_out}"

    def draw(ax: Axes) -> None:
        rows = list(reversed(jobs))
        for base, (_, line) in enumerate(rows):
            _draw_job(ax, base, line, _ROW / top, frame.colour)
        ax.set_yticks([base + 0.4 for base in range(len(rows))], [short(name) for name, _ in rows])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.1, len(rows))
        clock(ax, frame.span_s)

    return Panel("limits", frame.title(title), 0.8 + 0.45 * len(jobs), draw)


def _draw_job(ax: Axes, base: int, timeline: Timeline, height: float, colour: str) -> None:
    """Draw what a job used and might use; a core is so high."""
    if used := thinned(timeline.use):
        tops = [base + height * cores for _, cores in used]
        shade: dict[str, Any] = {"color": colour, "alpha": 0.45, "linewidth": 0}
        ax.fill_between([time for time, _ in used], base, tops, step="pre", **shade)
    if timeline.bound:
        times, bounds = zip(*changes(timeline.bound), strict=True)
        tops = [base + height * cores for cores in bounds]  # NaN breaks the line
        ax.step(times, tops, where="post", color="#000000", linewidth=1.1)
    ax.axhline(base, color="#bbbbbb", linewidth=0.5, zorder=0)


def _has_limit(line: Timeline) -> bool:
    return any(not math.isnan(cores) for _, cores in line.bound)


_MOST_LINES = 8
_FLOOR = 0.001
"""Lower end of the axis, as a part of the first value. Smaller values are drawn there."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A job's metric, without the points from before the run."""

    job: str
    metric: str
    points: Series
    has_diverged: bool

    @property
    def label(self) -> str:
        """Its text in the legend."""
        if not self.has_diverged:
            return f"{self.job} {self.metric}"
        return f"{self.job} {self.metric}{', then NaN' if self.is_drawn else ': NaN'}"

    @property
    def is_drawn(self) -> bool:
        """Whether it has enough points for a line."""
        return len(self.points) > 1


def _scale(ax: Axes, *, is_relative: bool) -> None:
    """Give an axis a log scale with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_yscale("log")
    if is_relative:
        ax.set_ylim(max(_FLOOR, ax.get_ylim()[0]), min(100.0, ax.get_ylim()[1]))
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


def relative_error(points: Series, metric: str) -> Series:
    """Return a metric as an error relative to its first error. Metrics of all sizes can be
    compared so, and on a log scale a job that has nearly converged is not flat.

    The error of a loss is the loss, that of a score up to 1 is 1 minus the score. For a metric with
    other values, such as rewards, it is the distance to a value that lies a twentieth of the range
    beyond the best one.
    """
    values = [value for _, value in points]
    if metric_names.objective(metric) == "max":
        errors = [1 - value for value in values] if min(values) >= 0 else []
        best = max(values)
    else:
        errors, best = values, min(values)
    if not errors or min(errors) < 0 or max(errors) == 0:
        more = _BEYOND * (max(values) - min(values)) or 1.0
        errors = [abs(value - best) + more for value in values]
    first = next(error for error in errors if error > _LEAST * max(errors))
    return [
        SeriesPoint(time, max(_FLOOR, error / first))
        for (time, _), error in zip(points, errors, strict=True)
    ]


_BEYOND = 0.05
_LEAST = 1e-12
"""Part of the largest error that is no error yet: what is relative to it has no size."""


def progress_panel(frame: TimeFrame) -> Panel | None:
    """Return the panel of the trainings with most points, None if none has two points."""
    title = "Progress: loss, or 1 - score, relative to the first value"
    return _lines_panel(frame, "progress", title, "of the first, log scale", is_serving=False)


def responses_panel(frame: TimeFrame) -> Panel | None:
    """Return the panel of the servers with most response times, None if none has two."""
    return _lines_panel(frame, "responses", "Response times", "seconds, log scale", is_serving=True)


def _lines(frame: TimeFrame, *, is_serving: bool) -> list[_Line]:
    lines = []
    for name, line in frame.run.timelines.items():
        if line.metric and bool(judging_metric.latencies([line.metric])) is is_serving:
            points = [point for point in line.progress if point[0] >= 0]
            lines.append(_Line(short(name), line.metric, points, line.has_diverged))
    return lines


def _lines_panel(
    frame: TimeFrame, kind: str, title: str, y_label: str, *, is_serving: bool
) -> Panel | None:
    lines = _lines(frame, is_serving=is_serving)
    curves = [line for line in lines if line.is_drawn]
    if not curves:
        return None
    lost = [line for line in lines if line.has_diverged and not line.is_drawn]
    longest = sorted(curves, key=lambda line: -len(line.points))[:_MOST_LINES]
    drawn = [line for line in curves if line in longest]
    left_out = f", {len(drawn)} of {len(curves)} jobs" if len(drawn) < len(curves) else ""

    def draw(ax: Axes) -> None:
        for number, line in enumerate(drawn):
            points = line.points if is_serving else relative_error(line.points, line.metric)
            times, values = zip(*thinned(points), strict=True)
            ax.plot(times, values, linewidth=1.4, label=safe(line.label), **line_style(number))
        for line in lost:
            ax.plot([], [], " ", label=safe(line.label))
        _scale(ax, is_relative=not is_serving)
        ax.set_ylabel(y_label)
        clock(ax, frame.span_s)
        legend(ax, handlelength=3)

    return Panel(kind, frame.title(f"{title}{left_out}"), 2.8, draw)
