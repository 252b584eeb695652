"""Panels in which all runs stand together: ratios, completion times, satisfied models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.report.plots.axes import Panel, clock, legend, line_style, safe
from dltools.report.ranking import by_policy
from dltools.report.timelines import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURES = {
    "makespan": "makespan",
    "mean_completion": "mean completion",
    "time_to_first": "time to target",
    "satisfied": "satisfied models",
}
_FILLS = ("#2166ac", "#f4a582", "#92c5de", "#e0e0e0", "#b2182b", "#d9f0d3")
_HATCHES = ("", "///", "...", "", "xxx", "\\\\\\")


def bar_style(number: int) -> dict[str, Any]:
    """Return the fill and hatch of the bars of this number, from 0. 18 differ."""
    place = number + number // len(_FILLS)
    return {"color": _FILLS[number % len(_FILLS)], "hatch": _HATCHES[place % len(_HATCHES)]}


@dataclass(frozen=True, slots=True)
class _Ratios:
    rows: Sequence[Mapping[str, Any]]
    measures: Sequence[str]
    baseline: str

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
            **bar_style(number),
        )
        texts = [f"{value:.2f}" if value else "" for value in values]
        ax.bar_label(bars, texts, padding=3, fontsize=8)


def ratios_panel(runs: Sequence[Run], baseline: str) -> Panel | None:
    """Return the panel of ratios: what each run comes to, compared with the baseline. None where
    fewer than two runs have a ratio in common."""
    if len(runs) < 2:
        return None
    rows = by_policy({run.label: run.repeats for run in runs}, baseline, "run")
    measures = [
        key for key in _MEASURES if sum(row[f"{key}_ratio"] is not None for row in rows) > 1
    ]
    if not measures:
        return None
    height = 0.9 + len(measures) * max(0.5, 0.2 * len(rows))
    draw = _Ratios(rows, measures, baseline).draw
    return Panel("compare", f"Compared with {baseline}", height, draw)


_FEWEST = 3
"""Completion times that make a distribution."""


@dataclass(frozen=True, slots=True)
class _Completions:
    """The completion times (s) of a run's trainings in order, and how many trainings it has."""

    label: str
    times: list[float]
    jobs: int

    def draw(self, ax: Axes, last: float, number: int) -> None:
        if not self.times:
            return
        shares = [place / self.jobs for place in range(len(self.times) + 1)]
        ax.step(
            [self.times[0], *self.times, last],
            [*shares, shares[-1]],
            where="post",
            linewidth=1.6,
            label=safe(self.label),
            **line_style(number),
        )


def completions_panel(runs: Sequence[Run]) -> Panel | None:
    """Return the panel of completion times: the fraction of the jobs that were done within a time.
    None where no run has enough trainings that are done."""
    found = [_completions(run) for run in runs]
    if not any(len(one.times) >= _FEWEST for one in found):
        return None

    def draw(ax: Axes) -> None:
        last = max(one.times[-1] for one in found if one.times)
        for number, one in enumerate(found):
            one.draw(ax, last, number)
        ax.set_ylabel("fraction of the jobs")
        ax.set_ylim(0, 1.02)
        clock(ax, last)
        ax.set_xlabel(f"completion time, {ax.get_xlabel()}")
        legend(ax, handlelength=3)

    return Panel("cdf", "Jobs done within a time", 2.8, draw)


def _completions(run: Run) -> _Completions:
    trainings = [job for jobs in run.repeats for job in jobs if job.served == 0]
    times = sorted(job.completion for job in trainings if job.completion is not None)
    return _Completions(run.label, times, len(trainings))


def satisfied_panel(runs: Sequence[Run]) -> Panel | None:
    """Return the panel of how many serving jobs kept their response-time targets, None where no
    job has one."""
    shown = [run for run in runs if run.satisfied]
    if not shown:
        return None
    serving = max(sum(job.served > 0 for job in run.jobs) for run in shown)

    def draw(ax: Axes) -> None:
        for number, run in enumerate(shown):
            ax.step(
                [time for time, _ in run.satisfied],
                [count for _, count in run.satisfied],
                where="post",
                linewidth=1.6,
                label=safe(run.label),
                **line_style(number),
            )
        ax.axhline(serving, color="#777777", linewidth=0.8, linestyle=":")
        ax.set_ylabel(f"satisfied of {serving}")
        ax.set_ylim(0, serving * 1.05)
        clock(ax, max(run.satisfied[-1][0] for run in shown))
        legend(ax, handlelength=3)

    return Panel("satisfied", "Models that keep their response-time targets", 2.6, draw)
