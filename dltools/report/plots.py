"""Runs as pictures: each panel answers one question, and can be read without colour."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.errors import UnavailableError
from dltools.report.comparison import by_policy
from dltools.report.looks import (
    COLOURS,
    DASHES,
    FILLS,
    HATCHES,
    area,
    changes,
    class_legend,
    clock,
    legend,
    look,
    mark,
    name_rows,
    safe,
    short,
    stretches,
    thinned,
)
from dltools.report.run import Lane, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("compare", "gantt", "limits", "progress", "cdf", "satisfied")
"""The panels that there are."""
OVER_TIME = ("gantt", "limits", "progress")
"""Those of them whose axis is a run's time."""

_WIDTH = 9.0  # inches
_MOST_LANES = 16
_MOST_BARS = 400
_MOST_LINES = 8
_DPI = 100

_MEASURES = {
    "makespan": "makespan", "mean_completion": "mean completion",
    "time_to_first": "time to target", "satisfied": "satisfied models",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: what it is about, its height in inches, and what draws it."""

    kind: str
    title: str
    height: float
    draw: Callable[[Axes], None]


def panels(runs: Sequence[Run], kinds: Sequence[str], baseline: str) -> list[Panel]:
    """Return the panels of these kinds for which the runs have anything to show."""
    found: list[Panel] = []
    for kind in kinds:
        if kind == "compare":
            found += _compare(runs, baseline)
        elif kind == "cdf":
            found += _cdf(runs)
        elif kind == "satisfied":
            found += _satisfied(runs)
        else:
            one = {"gantt": _gantt, "limits": _limits, "progress": _progress}[kind]
            span = max((run.end for run in runs), default=0.0)  # the same for all, to be compared
            for run in runs:
                found += one(run, span, len(runs) > 1)
    return found


def picture(chosen: Sequence[Panel]) -> Figure:
    """Return panels below each other. Raises `UnavailableError` without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnavailableError(
            "plots need matplotlib: pip install matplotlib, or choose table, markdown or csv"
        ) from error
    matplotlib.rcParams.update(
        {"svg.hashsalt": "dltools", "svg.fonttype": "path", "font.family": "DejaVu Sans",
         "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
         "axes.titlelocation": "left", "axes.titlesize": 10, "axes.titleweight": "bold",
         "hatch.linewidth": 0.6}
    )  # fmt: skip
    heights = [panel.height for panel in chosen]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(chosen), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, ax in zip(chosen, axes, strict=True):
        ax.set_title(safe(panel.title))
        panel.draw(ax)
    return figure


def rendered(figure: Figure, format_: str, scale: float = 1.0) -> bytes:
    """Return a picture as "png" or "svg", always the same bytes for the same runs."""
    out = io.BytesIO()
    metadata: Mapping[str, Any] = {"Date": None} if format_ == "svg" else {"Software": None}
    figure.savefig(out, format=format_, dpi=_DPI * scale, metadata=metadata)
    return out.getvalue()


def _titled(title: str, run: Run, several: bool) -> str:
    return f"{title}: {run.label}" if several else title


# Panels


def _compare(runs: Sequence[Run], baseline: str) -> list[Panel]:
    if len(runs) < 2:
        return []
    rows = by_policy({run.label: run.repeats for run in runs}, baseline)
    shown = [key for key in _MEASURES
             if sum(row[f"{key}_ratio"] is not None for row in rows) > 1]  # fmt: skip
    if not shown:
        return []

    def draw(ax: Axes) -> None:
        height = 0.8 / len(rows)
        for number, row in enumerate(rows):
            spots = [place + number * height for place in range(len(shown))]
            values = [row[f"{key}_ratio"] or 0.0 for key in shown]
            bars = ax.barh(spots, values, height * 0.92, color=FILLS[number % len(FILLS)],
                           hatch=HATCHES[number % len(HATCHES)], edgecolor="#333333",
                           linewidth=0.6, label=safe(str(row["policy"])))  # fmt: skip
            texts = [f"{value:.2f}" if value else "" for value in values]
            ax.bar_label(bars, texts, padding=3, fontsize=8)
        ax.axvline(1.0, color="#333333", linewidth=0.8, linestyle=":", zorder=0)
        ax.margins(x=0.08)
        ax.set_yticks([place + 0.4 - height / 2 for place in range(len(shown))],
                      [_MEASURES[key] for key in shown])  # fmt: skip
        ax.invert_yaxis()
        ax.set_xlabel(safe(f"ratio to {baseline}"))
        legend(ax)

    height = 0.9 + len(shown) * max(0.5, 0.2 * len(rows))
    return [Panel("compare", f"Against {baseline}", height, draw)]


def _gantt(run: Run, span: float, several: bool) -> list[Panel]:
    started = [job for job in run.jobs if job.start is not None]
    if not started:
        return []
    jobs = started[:_MOST_BARS]
    end = run.end or max(job.arrival for job in jobs) + 1
    left_out = f", the first {len(jobs)} of {len(started)}" if len(jobs) < len(started) else ""

    def draw(ax: Axes) -> None:
        used: dict[str, tuple[str, str]] = {}
        for place, job in enumerate(jobs):
            lane = run.lanes.get(job.name, Lane())
            begin = job.start or 0.0
            stop = next((t for t in (job.finish, lane.ended) if t is not None), end)
            if begin > job.arrival:
                ax.barh(place, begin - job.arrival, 0.7, job.arrival, color="none",
                        edgecolor="#999999", linewidth=0.6)  # fmt: skip
            for since, until, job_class in stretches(lane.classes, begin, stop):
                fill, hatch = look(job_class, used)
                ax.barh(place, until - since, 0.7, since, color=fill, hatch=hatch,
                        edgecolor="#444444", linewidth=0.4)  # fmt: skip
            mark(ax, place, [job.first, job.final], ["^", "*"])
            mark(ax, place, lane.migrated, [">"] * len(lane.migrated))
            if job.finish is None:
                fate = "..." if job.exit_code is None else f"failed ({job.exit_code})"
                ax.annotate(fate, (stop, place), (3, 0), textcoords="offset points", va="center")
        name_rows(ax, [job.name for job in jobs])
        ax.invert_yaxis()
        clock(ax, span)
        class_legend(ax, used, jobs_have_targets=any(job.first is not None for job in jobs),
                      moved=any(lane.migrated for lane in run.lanes.values()))  # fmt: skip

    height = 0.9 + min(10.0, max(0.6, 0.2 * len(jobs)))
    return [Panel("gantt", _titled(f"Jobs{left_out}", run, several), height, draw)]


def _limits(run: Run, span: float, several: bool) -> list[Panel]:
    lanes = [(name, lane) for name, lane in run.lanes.items() if lane.limit or lane.use]
    if not lanes:
        return []
    most = sorted(lanes, key=lambda item: -area(item[1].use))[:_MOST_LANES]
    kept = [item for item in lanes if item in most]
    top = max([value for _, lane in kept for _, value in (*lane.limit, *lane.use)], default=1.0)
    left_out = f", the {len(kept)} of {len(lanes)} that used most" if len(kept) < len(lanes) else ""

    def draw(ax: Axes) -> None:
        for place, (_, lane) in enumerate(kept):
            base = len(kept) - 1 - place
            if lane.use:
                used = thinned(lane.use)
                times = [time for time, _ in used]
                ax.fill_between(times, [base] * len(times),
                                [base + 0.85 * value / top for _, value in used],
                                step="pre", color="#9ecae1", linewidth=0)  # fmt: skip
            if lane.limit:
                steps = changes(lane.limit)
                ax.step([time for time, _ in steps],
                        [base + 0.85 * value / top for _, value in steps],
                        where="post", color="#000000", linewidth=1.1)  # fmt: skip
            ax.axhline(base, color="#bbbbbb", linewidth=0.5, zorder=0)
        names = [name for name, _ in reversed(kept)]
        ax.set_yticks([place + 0.4 for place in range(len(kept))], [short(name) for name in names])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.1, len(kept))
        clock(ax, span)

    title = _titled(f"CPU allowed (line) and used (area), 0 to {top:.3g} cores each{left_out}",
                    run, several)  # fmt: skip
    return [Panel("limits", title, 0.8 + 0.45 * len(kept), draw)]


def _progress(run: Run, span: float, several: bool) -> list[Panel]:
    # What was said before the run began counts for targets, but nobody sees it here.
    lanes = [(f"{short(name)} {lane.metric}{', then NaN' if lane.diverged else ''}",
              [point for point in lane.progress if point[0] >= 0])
             for name, lane in run.lanes.items() if lane.metric]  # fmt: skip
    lost = [name for name, points in lanes if len(points) < 2 and name.endswith("NaN")]
    lanes = [(name, points) for name, points in lanes if len(points) > 1]
    if not lanes:
        return []
    longest = sorted(lanes, key=lambda item: -len(item[1]))[:_MOST_LINES]
    kept = [item for item in lanes if item in longest]

    def draw(ax: Axes) -> None:
        for number, (name, said) in enumerate(kept):
            peak = max(abs(value) for _, value in said) or 1.0
            points = thinned(said)
            ax.plot([time for time, _ in points], [value / peak for _, value in points],
                    color=COLOURS[number % len(COLOURS)],
                    linestyle=DASHES[number % len(DASHES)], linewidth=1.4,
                    label=safe(name))  # fmt: skip
        for name in lost:
            ax.plot([], [], " ", label=safe(name.replace(", then", ":")))
        ax.set_ylabel("part of its largest value")
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        clock(ax, span)
        legend(ax)

    left_out = f", {len(kept)} of {len(lanes)} jobs" if len(kept) < len(lanes) else ""
    return [Panel("progress", _titled(f"Progress{left_out}", run, several), 2.8, draw)]


def _cdf(runs: Sequence[Run]) -> list[Panel]:
    times = {
        run.label: sorted(job.completion for jobs in run.repeats for job in jobs
                          if job.completion is not None and job.served == 0)
        for run in runs
    }  # fmt: skip
    if not any(len(found) > 2 for found in times.values()):
        return []
    all_ = {run.label: sum(job.served == 0 for jobs in run.repeats for job in jobs) for run in runs}
    last = max(found[-1] for found in times.values() if found)

    def draw(ax: Axes) -> None:
        for number, (label, found) in enumerate(times.items()):
            if found:
                parts = [place / all_[label] for place in range(len(found) + 1)]
                ax.step([found[0], *found, last], [*parts, parts[-1]], where="post",
                        color=COLOURS[number % len(COLOURS)],
                        linestyle=DASHES[number % len(DASHES)], linewidth=1.6,
                        label=safe(label))  # fmt: skip
        ax.set_ylabel("part of the jobs")
        ax.set_ylim(0, 1.02)
        clock(ax, last)
        ax.set_xlabel(f"completion time, {ax.get_xlabel()}")
        legend(ax)

    return [Panel("cdf", "Jobs done within a time", 2.8, draw)]


def _satisfied(runs: Sequence[Run]) -> list[Panel]:
    shown = [run for run in runs if run.satisfied]
    if not shown:
        return []

    def draw(ax: Axes) -> None:
        for number, run in enumerate(shown):
            ax.step([time for time, _ in run.satisfied], [count for _, count in run.satisfied],
                    where="post", color=COLOURS[number % len(COLOURS)],
                    linestyle=DASHES[number % len(DASHES)], linewidth=1.6,
                    label=safe(run.label))  # fmt: skip
        serving = max(sum(job.served > 0 for job in run.jobs) for run in shown)
        ax.axhline(serving, color="#777777", linewidth=0.8, linestyle=":")
        ax.set_ylabel(f"satisfied of {serving}")
        ax.set_ylim(0, serving * 1.05)
        clock(ax, max(run.satisfied[-1][0] for run in shown))
        legend(ax)

    return [Panel("satisfied", "Models that answer as asked", 2.6, draw)]
