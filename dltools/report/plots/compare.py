"""The panel of ratios: what each run comes to, compared with the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.report.comparison import by_policy
from dltools.report.plots.axes import legend, safe
from dltools.report.plots.panel import Panel
from dltools.report.run import Run

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


def panel(runs: Sequence[Run], baseline: str) -> Panel | None:
    """Return the panel, None where fewer than two runs have a ratio in common."""
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
