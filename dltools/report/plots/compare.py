"""The panel that compares all runs by their ratios to one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dltools.report.plots.axes import Panel, legend, run_styles, safe
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
