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


def ratios_panel(runs: Sequence[Run], baseline: str) -> Panel | None:
    """Return the panel of each run's ratios to the baseline, None if there is no ratio that two
    runs have."""
    if len(runs) < 2:
        return None
    repeats = {run.label: run.repeats for run in runs}
    rows = by_policy(repeats, baseline, "run")
    measures = [
        key for key in _MEASURES if sum(row[f"{key}_ratio"] is not None for row in rows) > 1
    ]
    if not measures:
        return None
    styles, spreads = run_styles(list(repeats)), ratio_spreads(repeats, baseline)
    height = 0.8 / len(rows)

    def draw(ax: Axes) -> None:
        for number, row in enumerate(rows):
            places = [place + number * height for place in range(len(measures))]
            values = [row[f"{key}_ratio"] or 0.0 for key in measures]
            bars = ax.barh(
                places,
                values,
                height * 0.92,
                xerr=_whiskers(values, measures, spreads.get(row["run"], {})),
                error_kw={"linewidth": 1.1},
                edgecolor="#333333",
                linewidth=0.6,
                label=safe(str(row["run"])),
                **styles[row["run"]].bar,
            )
            ax.bar_label(bars, [f"{one:.2f}" if one else "" for one in values], padding=4)
        ax.axvline(1.0, color="#333333", linewidth=0.8, linestyle=":", zorder=0)
        ax.margins(x=0.08)
        middles = [place + 0.4 - height / 2 for place in range(len(measures))]
        ax.set_yticks(middles, [_MEASURES[key] for key in measures])
        ax.invert_yaxis()
        ax.set_xlabel(safe(f"ratio to {baseline}"))
        legend(ax, handlelength=3)

    inches = 0.9 + len(measures) * max(0.5, 0.2 * len(rows))
    whiskers = "; whiskers: least and most of the repeats" if spreads else ""
    return Panel("compare", f"Compared with {baseline}{whiskers}", inches, draw)


def _whiskers(
    values: Sequence[float], measures: Sequence[str], spread: Mapping[str, tuple[float, float]]
) -> tuple[list[float], list[float]] | None:
    """Return how far the repeats reach below and above values, None without repeats."""
    if not spread:
        return None
    ends = [spread.get(key, (value, value)) for key, value in zip(measures, values, strict=True)]
    pairs = list(zip(values, ends, strict=True))
    below = [max(0.0, value - low) for value, (low, _) in pairs]
    return below, [max(0.0, high - value) for value, (_, high) in pairs]


_FEWEST = 3
"""Least number of completion times that make a distribution."""


@dataclass(frozen=True, slots=True)
class _Completions:
    """The sorted completion times (s) of trainings; `jobs`: how many trainings there are."""

    times: list[float]
    jobs: int

    def part_by(self, time: float) -> float:
        """Return the fraction of the jobs that were done at a time (s)."""
        return bisect.bisect_right(self.times, time) / self.jobs if self.jobs else 0.0


def _completions(jobs: Sequence[JobResult]) -> _Completions:
    trainings = [job for job in jobs if job.served == 0]
    times = sorted(job.completion for job in trainings if job.completion is not None)
    return _Completions(times, len(trainings))


def completions_panel(runs: Sequence[Run]) -> Panel | None:
    """Return the panel of completion times: the fraction of the jobs that were done within a time.
    None if no run has enough finished trainings."""
    styles = run_styles([run.label for run in runs])
    found = {run.label: _completions([job for jobs in run.repeats for job in jobs]) for run in runs}
    if not any(len(one.times) >= _FEWEST for one in found.values()):
        return None
    last = max(one.times[-1] for one in found.values() if one.times)

    def draw(ax: Axes) -> None:
        for run in runs:
            if found[run.label].times:
                _draw_completions(ax, run, found[run.label], last, styles[run.label])
        ax.set_ylabel("fraction of the jobs")
        ax.set_ylim(0, 1.02)
        clock(ax, last)
        ax.set_xlabel(f"completion {ax.get_xlabel()}")
        legend(ax, handlelength=3)

    several = any(len(run.repeats) > 1 for run in runs)
    bands = ", with the least and most of the repeats" if several else ""
    return Panel("cdf", f"Jobs done within a time{bands}", 2.8, draw)


def _draw_completions(
    ax: Axes, run: Run, whole: _Completions, last: float, style: RunStyle
) -> None:
    repeats = [_completions(jobs) for jobs in run.repeats]
    if len(repeats) > 1:
        ends = sorted({time for one in repeats for time in one.times} | {last})
        parts = [[one.part_by(end) for one in repeats] for end in ends]
        least, most = list(map(min, parts)), list(map(max, parts))
        shade: dict[str, Any] = {"color": style.colour, "alpha": 0.18, "linewidth": 0}
        ax.fill_between(ends, least, most, step="post", **shade)
    shares = [place / whole.jobs for place in range(len(whole.times) + 1)]
    times = [whole.times[0], *whole.times, last]
    look = {"linewidth": 1.6, "label": safe(run.label), **style.line}
    ax.step(times, [*shares, shares[-1]], where="post", **look)


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
