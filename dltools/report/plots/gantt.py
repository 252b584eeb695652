"""The Gantt chart: when each job waited and ran, and in which class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.observations.outcomes import JobResult
from dltools.plan.policy.interface import JobClass
from dltools.report.plots.axes import Panel, TimeFrame, clock, legend, name_rows
from dltools.report.timelines import ClassChange, Run, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Look:
    """A fill colour and a hatch, so that classes also differ in grey."""

    fill: str
    hatch: str = ""


NO_CLASS = Look("#d4d4d4")

_LOOKS = (
    Look("#08519c"),
    Look("#6baed6", "///"),
    Look("#deebf7", "..."),
    Look("#d6604d", "xxx"),
    Look("#5ab4ac"),
    Look("#f4a582", "///"),
    Look("#d9f0d3", "\\\\\\"),
    Look("#762a83"),
    Look("#fee391", "xxx"),
    Look("#e0e0e0", "+++"),
)


class ClassLooks:
    """The looks of the classes in one chart, in the order in which they appear. Without a class, a
    job has the colour of the run."""

    def __init__(self, colour: str = NO_CLASS.fill) -> None:
        self._plain = Look(colour)
        self._looks: dict[JobClass, Look] = {}
        self._has_unclassed = False

    def __getitem__(self, job_class: JobClass | None) -> Look:
        """Return a class's look."""
        if job_class is None:
            self._has_unclassed = True
            return self._plain
        return self._looks.setdefault(job_class, _LOOKS[len(self._looks) % len(_LOOKS)])

    def __iter__(self) -> Iterator[tuple[str, Look]]:
        """Yield label and look of each class in use."""
        for job_class, look in self._looks.items():
            name, word = job_class.name, job_class.word
            label = name if word == name else f"{name} {word}".strip()
            yield ("no class" if label == "-" else label), look
        if self._has_unclassed:
            yield ("no class yet" if self._looks else "running"), self._plain


@dataclass(frozen=True, slots=True)
class Stretch:
    """A span of time (s) in which a job is in one class, None before its first class is known."""

    begin: float
    end: float
    job_class: JobClass | None


def stretches(changes: Sequence[ClassChange], begin: float, end: float) -> list[Stretch]:
    """Return the spans of classes that fill a job's life, from `begin` to `end` (s)."""
    spans: list[Stretch] = []
    since, now = begin, None
    for time, job_class in changes:
        time = min(max(time, begin), end)
        if time > since:
            spans.append(Stretch(since, time, now))
        since, now = time, job_class
    if end > since or not spans:
        spans.append(Stretch(since, end, now))
    return spans


_MOST_BARS = 400
_MOST_LABELS = 40
_NEAR_END = 0.85  # of the axis
_WAITING: dict[str, Any] = {"facecolor": "none", "edgecolor": "#999999", "linewidth": 0.6}
_OUTLINED: dict[str, Any] = {"color": "#ffffff", "markeredgecolor": "#000000"}
_MARKS = {"^": "first target met", "*": "last target met", ">": "migrated"}


@dataclass(frozen=True, slots=True)
class _Chart:
    run: Run
    jobs: Sequence[JobResult]
    span_s: float
    looks: ClassLooks

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
        for stretch in stretches(timeline.classes, start, stop):
            look = self.looks[stretch.job_class]
            ax.barh(
                place,
                stretch.end - stretch.begin,
                0.7,
                stretch.begin,
                color=look.fill,
                hatch=look.hatch,
                edgecolor="#444444",
                linewidth=0.4,
            )
        marks = [("^", job.first), ("*", job.final), *((">", time) for time in timeline.migrated)]
        for shape, time in marks:
            if time is not None:
                ax.plot(time, place, shape, markersize=7, **_OUTLINED)
        if job.finish is None and len(self.jobs) <= _MOST_LABELS:
            self._label_end(ax, place, job, stop)

    def _label_end(self, ax: Axes, place: int, job: JobResult, stop: float) -> None:
        """Write behind a bar whether the job still runs or has failed; on the end of the bar if
        there is no room behind it."""
        label = "..." if job.exit_code is None else f"failed ({job.exit_code})"
        is_inside = job.exit_code is not None and stop > _NEAR_END * self.span_s
        paper = {"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.0}
        ax.annotate(
            label,
            (stop, place),
            (-4 if is_inside else 3, 0),
            textcoords="offset points",
            va="center",
            ha="right" if is_inside else "left",
            fontsize=9,
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
            Line2D([], [], marker=shape, linestyle="", label=_MARKS[shape], **_OUTLINED)
            for shape in shapes
        ]
        if len(handles) > 1 or any(word != "running" for word, _ in self.looks):
            legend(ax, handles=handles)


def gantt_panel(frame: TimeFrame) -> Panel | None:
    """Return the chart of a run, None where no job has started."""
    started = [job for job in frame.run.jobs if job.start is not None]
    if not started:
        return None
    jobs = started[:_MOST_BARS]
    left_out = f", the first {len(jobs)} of {len(started)}" if len(jobs) < len(started) else ""
    height = 0.9 + min(10.0, max(0.6, 0.2 * len(jobs)))
    has_classes = any(line.classes for line in frame.run.timelines.values())
    looks = ClassLooks() if has_classes else ClassLooks(frame.colour)
    draw = _Chart(frame.run, jobs, frame.span_s, looks).draw
    return Panel("gantt", frame.title(f"Jobs from start to end{left_out}"), height, draw)
