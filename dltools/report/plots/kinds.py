"""The kinds of panels that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dltools.report.plots import cdf, compare, gantt, limits, progress, satisfied
from dltools.report.plots.panel import Panel, TimeFrame
from dltools.report.run import Run

KINDS = ("compare", "gantt", "limits", "progress", "cdf", "satisfied")
"""The kinds of panels, in order."""

_OVER_TIME: dict[str, Callable[[TimeFrame], Panel | None]] = {
    "gantt": gantt.panel,
    "limits": limits.panel,
    "progress": progress.panel,
}
OVER_TIME = tuple(_OVER_TIME)
"""Those of them whose axis is a run's time: one panel per run."""


def panels(runs: Sequence[Run], kinds: Sequence[str], baseline: str) -> list[Panel]:
    """Return the panels of these kinds for which the runs have data.

    `baseline` is the label of the run that the others are compared with.
    """
    span = max((run.end for run in runs), default=0.0)
    frames = [TimeFrame(run, span, len(runs) > 1) for run in runs]
    found: list[Panel | None] = []
    for kind in kinds:
        if kind == "compare":
            found.append(compare.panel(runs, baseline))
        elif kind == "cdf":
            found.append(cdf.panel(runs))
        elif kind == "satisfied":
            found.append(satisfied.panel(runs))
        else:
            found += [_OVER_TIME[kind](frame) for frame in frames]
    return [panel for panel in found if panel is not None]
