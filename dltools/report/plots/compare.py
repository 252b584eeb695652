"""Panels that compare all runs: ratios, completion times, satisfied models."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.observations.outcomes import JobResult
from dltools.report.plots.axes import Panel, RunStyle, clock, legend, run_styles, safe
from dltools.report.ranking import by_policy, ratio_spreads
from dltools.report.timelines import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURES = {
    "makespan": "makespan",
    "mean_completion": "mean completion",
    "time_to_first": "time to target",
    "satisfied": "satisfied models",
}


@dataclass(frozen=True, slots=True)
class _Ratios:
    rows: Sequence[Mapping[str, Any]]
    measures: Sequence[str]
    baseline: str
    styles: Mapping[str, RunStyle]
    spreads: Mapping[str, Mapping[str, tuple[float, float]]]

    def draw(self, ax: Axes) -> None:
        height = 0.8 / len(self.rows)
        for number in range(len(self.rows)):
            self._draw_run(ax, number, height)
        ax.axvline(1.0, color="#333333", linewidth=0.8, linestyle=":", zorder=0)
        ax.margins(x=0.08)
        ax.set_yticks(
            [place + 0.4 - height / 2 for place in range(len(self.measures))],
            [_MEASURES[key] for key in self.measures],
        )
        ax.invert_yaxis()
        ax.set_xlabel(safe(f"ratio to {self.baseline}"))
        legend(ax, handlelength=3)

    def _draw_run(self, ax: Axes, number: int, height: float) -> None:
        row = self.rows[number]
        places = [place + number * height for place in range(len(self.measures))]
        values = [row[f"{key}_ratio"] or 0.0 for key in self.measures]
        bars = ax.barh(
            places,
            values,
            height * 0.92,
            edgecolor="#333333",
            linewidth=0.6,
            label=safe(str(row["run"])),
            **self.styles[row["run"]].bar,
        )
        ends = values
        for at, key in enumerate(self.measures):
            low, high = self.spreads.get(row["run"], {}).get(key, (values[at], values[at]))
            if high > low:
                ax.plot([low, high], [places[at]] * 2, color="#000000", linewidth=1.1)
                ends = [*ends[:at], max(high, values[at]), *ends[at + 1 :]]
        texts = [f"{value:.2f}" if value else "" for value in values]
        for bar, end, text in zip(bars, ends, texts, strict=True):
            place = (end, bar.get_y() + bar.get_height() / 2)
            ax.annotate(text, place, (4, 0), textcoords="offset points", va="center")


def ratios_panel(runs: Sequence[Run], baseline: str) -> Panel | None:
    """Return the panel of each run's ratios to the baseline, None if there is no ratio that two
    runs have."""
    if len(runs) < 2:
        return None
    rows = by_policy({run.label: run.repeats for run in runs}, baseline, "run")
    measures = [
        key for key in _MEASURES if sum(row[f"{key}_ratio"] is not None for row in rows) > 1
    ]
    if not measures:
        return None
    height = 0.9 + len(measures) * max(0.5, 0.2 * len(rows))
    styles, spreads = (
        run_styles([run.label for run in runs]),
        ratio_spreads({run.label: run.repeats for run in runs}, baseline),
    )
    draw = _Ratios(rows, measures, baseline, styles, spreads).draw
    whiskers = "; whiskers: least and most of the repeats" if spreads else ""
    return Panel("compare", f"Compared with {baseline}{whiskers}", height, draw)


_FEWEST = 3
"""Least number of completion times that make a distribution."""


@dataclass(frozen=True, slots=True)
class _Completions:
    """The sorted completion times (s) of a run's trainings; `jobs`: how many trainings it has."""

    label: str
    times: list[float]
    jobs: int
    repeats: Sequence[_Completions]

    def draw(self, ax: Axes, last: float, style: RunStyle) -> None:
        if not self.times:
            return
        if len(self.repeats) > 1:
            ends = sorted({time for one in self.repeats for time in one.times} | {last})
            parts = [[one.part_by(end) for one in self.repeats] for end in ends]
            ax.fill_between(
                ends,
                [min(part) for part in parts],
                [max(part) for part in parts],
                step="post",
                color=style.colour,
                alpha=0.18,
                linewidth=0,
            )
        shares = [place / self.jobs for place in range(len(self.times) + 1)]
        ax.step(
            [self.times[0], *self.times, last],
            [*shares, shares[-1]],
            where="post",
            linewidth=1.6,
            label=safe(self.label),
            **style.line,
        )

    def part_by(self, time: float) -> float:
        """Return the fraction of the jobs that were done at a time (s)."""
        return bisect.bisect_right(self.times, time) / self.jobs if self.jobs else 0.0


def completions_panel(runs: Sequence[Run]) -> Panel | None:
    """Return the panel of completion times: the fraction of the jobs that were done within a time.
    None if no run has enough finished trainings."""
    found = [_completions(run) for run in runs]
    styles = run_styles([run.label for run in runs])
    bands = (
        ", with the least and most of the repeats" if any(len(r.repeats) > 1 for r in runs) else ""
    )
    if not any(len(one.times) >= _FEWEST for one in found):
        return None

    def draw(ax: Axes) -> None:
        last = max(one.times[-1] for one in found if one.times)
        for one in found:
            one.draw(ax, last, styles[one.label])
        ax.set_ylabel("fraction of the jobs")
        ax.set_ylim(0, 1.02)
        clock(ax, last)
        ax.set_xlabel(f"completion {ax.get_xlabel()}")
        legend(ax, handlelength=3)

    return Panel("cdf", f"Jobs done within a time{bands}", 2.8, draw)


def _completions(run: Run) -> _Completions:
    repeats = [_completed(run.label, jobs) for jobs in run.repeats]
    return _completed(run.label, [job for jobs in run.repeats for job in jobs], repeats)


def _completed(
    label: str, jobs: Sequence[JobResult], repeats: Sequence[_Completions] = ()
) -> _Completions:
    trainings = [job for job in jobs if job.served == 0]
    times = sorted(job.completion for job in trainings if job.completion is not None)
    return _Completions(label, times, len(trainings), repeats)


def satisfied_panel(runs: Sequence[Run]) -> Panel | None:
    """Return the panel of the number of serving jobs that met their response-time targets, None if
    no job has such a target."""
    shown = [run for run in runs if run.satisfied]
    if not shown:
        return None
    styles = run_styles([run.label for run in runs])
    serving = max(sum(job.served > 0 for job in run.jobs) for run in shown)

    def draw(ax: Axes) -> None:
        for run in shown:
            ax.step(
                [time for time, _ in run.satisfied],
                [count for _, count in run.satisfied],
                where="post",
                linewidth=1.6,
                label=safe(run.label),
                **styles[run.label].line,
            )
        ax.axhline(serving, color="#777777", linewidth=0.8, linestyle=":")
        ax.set_ylabel(f"models, of {serving}")
        ax.set_ylim(0, serving * 1.05)
        clock(ax, max(run.satisfied[-1][0] for run in shown))
        legend(ax, handlelength=3)

    return Panel("satisfied", "Models that keep their response-time targets", 2.6, draw)
