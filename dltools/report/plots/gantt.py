"""The Gantt chart: when each job waited and ran, and in which class it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dltools.observations.outcomes import JobResult
from dltools.report.plots.axes import clock, legend, name_rows
from dltools.report.plots.classes import ClassLooks, stretches
from dltools.report.plots.panel import Panel, TimeFrame
from dltools.report.run import Run, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS = 400
_MOST_FATES = 40
_NEAR_END = 0.85  # of the axis
_WAITING: dict[str, Any] = {"facecolor": "none", "edgecolor": "#999999", "linewidth": 0.6}
_MARKS = {"^": "first target met", "*": "last target met", ">": "migrated"}


@dataclass(frozen=True, slots=True)
class _Chart:
    run: Run
    jobs: Sequence[JobResult]
    span_s: float
    looks: ClassLooks = field(default_factory=ClassLooks)

    def draw(self, ax: Axes) -> None:
        end = self.run.end or max(job.arrival for job in self.jobs) + 1
        for place, job in enumerate(self.jobs):
            self._draw_job(ax, place, job, end)
        name_rows(ax, [job.name for job in self.jobs])
        ax.invert_yaxis()
        clock(ax, self.span_s)
        self._explain(ax)

    def _draw_job(self, ax: Axes, place: int, job: JobResult, end: float) -> None:
        timeline = self.run.timelines.get(job.name, Timeline())
        start = job.start or 0.0
        stop = next((time for time in (job.finish, timeline.ended) if time is not None), end)
        if start > job.arrival:
            ax.barh(place, start - job.arrival, 0.7, job.arrival, **_WAITING)
        for one in stretches(timeline.classes, start, stop):
            look = self.looks[one.job_class]
            ax.barh(
                place,
                one.end - one.begin,
                0.7,
                one.begin,
                color=look.fill,
                hatch=look.hatch,
                edgecolor="#444444",
                linewidth=0.4,
            )
        marks = [("^", job.first), ("*", job.final), *((">", time) for time in timeline.migrated)]
        for shape, time in marks:
            if time is not None:
                ax.plot(
                    time, place, shape, color="#ffffff", markeredgecolor="#000000", markersize=7
                )
        if job.finish is None and len(self.jobs) <= _MOST_FATES:
            self._tell_fate(ax, place, job, stop)

    def _tell_fate(self, ax: Axes, place: int, job: JobResult, stop: float) -> None:
        """Write behind a bar that the job goes on or has failed; onto its end where there is no
        room before the legend."""
        fate = "..." if job.exit_code is None else f"failed ({job.exit_code})"
        is_inside = job.exit_code is not None and stop > _NEAR_END * self.span_s
        paper = {"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.0}
        ax.annotate(
            fate,
            (stop, place),
            (-4 if is_inside else 3, 0),
            textcoords="offset points",
            va="center",
            ha="right" if is_inside else "left",
            fontsize=8,
            bbox=paper if is_inside else None,
        )

    def _explain(self, ax: Axes) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Any] = [
            Patch(facecolor=look.fill, hatch=look.hatch, edgecolor="#444444", label=label)
            for label, look in self.looks
        ]
        if any((job.start or 0.0) > job.arrival for job in self.jobs):
            handles.append(Patch(**_WAITING, label="waiting"))
        shapes = "^*" if any(job.first is not None for job in self.jobs) else ""
        shapes += ">" if any(line.migrated for line in self.run.timelines.values()) else ""
        handles += [
            Line2D(
                [],
                [],
                marker=shape,
                linestyle="",
                color="#ffffff",
                markeredgecolor="#000000",
                label=_MARKS[shape],
            )
            for shape in shapes
        ]
        if handles:
            legend(ax, handles=handles)


def panel(frame: TimeFrame) -> Panel | None:
    """Return the chart of a run, None where no job has started."""
    started = [job for job in frame.run.jobs if job.start is not None]
    if not started:
        return None
    jobs = started[:_MOST_BARS]
    left_out = f", the first {len(jobs)} of {len(started)}" if len(jobs) < len(started) else ""
    height = 0.9 + min(10.0, max(0.6, 0.2 * len(jobs)))
    draw = _Chart(frame.run, jobs, frame.span_s).draw
    return Panel("gantt", frame.title(f"Jobs{left_out}"), height, draw)
