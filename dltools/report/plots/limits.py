"""The panel of CPU: what each job was allowed, and what it used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dltools.report.plots.axes import clock, short
from dltools.report.plots.panel import Panel, TimeFrame
from dltools.report.plots.series import area, changes, thinned
from dltools.report.run import Timeline

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


def panel(frame: TimeFrame) -> Panel | None:
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
