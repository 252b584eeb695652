"""The panel of completion times: the fraction of the jobs that were done within a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dltools.report.plots.axes import clock, legend, line_style, safe
from dltools.report.plots.panel import Panel
from dltools.report.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def panel(runs: Sequence[Run]) -> Panel | None:
    """Return the panel, None where no run has enough trainings that are done."""
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
