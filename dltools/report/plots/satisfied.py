"""The panel of satisfied models: how many serving jobs kept their response-time targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dltools.report.plots.axes import clock, legend, line_style, safe
from dltools.report.plots.panel import Panel
from dltools.report.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def panel(runs: Sequence[Run]) -> Panel | None:
    """Return the panel, None where no job has a response-time target."""
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
