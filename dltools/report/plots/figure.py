"""Selects panels by kind, joins them into a picture, and renders it.

dl-report calls `why_no_pictures` before it reads anything, then `panels`, `picture` and `rendered`.
`panels` alone needs no matplotlib.
"""

from __future__ import annotations

import io
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dltools.report.plots.axes import Panel, TimeFrame, legend_inches, safe
from dltools.report.plots.gantt import gantt_panel
from dltools.report.plots.over_time import limits_panel, progress_panel, responses_panel
from dltools.report.plots.styles import run_colours
from dltools.report.timelines import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS: dict[str, Callable[[TimeFrame], Panel | None]] = {
    "gantt": gantt_panel,
    "limits": limits_panel,
    "progress": progress_panel,
    "responses": responses_panel,
}
KINDS = tuple(_PANELS)
"""The kinds of panels, in order."""


def panels(runs: Sequence[Run], kinds: Sequence[str]) -> list[Panel]:
    """Return a panel of each of these kinds for each run that has data for it."""
    span = max((run.end for run in runs), default=0.0)
    colours = run_colours([run.label for run in runs])
    frames = [TimeFrame(run, span, len(runs) > 1, colours[run.label]) for run in runs]
    made = (_PANELS[kind](frame) for kind in kinds for frame in frames)
    return [panel for panel in made if panel is not None]


WIDTH = 9.0
"""Width in inches: letters of 9 points have 12 px on a screen of 900 px."""
_DPI = 100
_STYLE = {
    "svg.hashsalt": "dltools",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "hatch.linewidth": 0.6,
}


def why_no_pictures() -> str:
    """Return why nothing can be drawn and what to install, "" where matplotlib is there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return f"pictures need matplotlib: {sys.prefix}/bin/python3 -m pip install matplotlib"
    return ""


def picture(panels: Sequence[Panel]) -> Figure:
    """Return the panels below each other in a picture."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(_STYLE)
    heights = [panel.height for panel in panels]
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, ax in zip(panels, axes, strict=True):
        title = textwrap.wrap(panel.title, round(WIDTH * _LETTERS_IN_AN_INCH)) or [""]
        ax.set_title("\n".join(map(safe, title)))
        panel.draw(ax)
    below = [legend_inches(ax) for ax in axes]
    whole = [height + more for height, more in zip(heights, below, strict=True)]
    figure.set_size_inches(WIDTH, sum(whole))
    axes[0].get_gridspec().set_height_ratios(whole)
    return figure


_LETTERS_IN_AN_INCH = 11.0
"""Most letters of a title."""


def rendered(figure: Figure, format_: str) -> bytes:
    """Return a picture as "png", for a screen of scale 2, "svg" or "pdf". The same runs give the
    same bytes, but for the names of an SVG's clips, which change where the layout's last digit
    does."""
    scale = 2 if format_ == "png" else 1
    out = io.BytesIO()
    warnings.filterwarnings("ignore", "Glyph")  # letters that the font lacks are drawn as boxes
    figure.savefig(out, format=format_, dpi=_DPI * scale, metadata=_NO_DATES[format_])
    return out.getvalue()


_NO_DATES: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
