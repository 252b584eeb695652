"""Selects panels by kind, joins them into a picture, and renders it.

dl-report calls `why_no_pictures` before it reads anything, then `panels`, `picture` and `rendered`.
`panels` alone needs no matplotlib.
"""

from __future__ import annotations

import io
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.report.plots.axes import Panel, TimeFrame, legend_inches, run_styles, safe
from dltools.report.plots.compare import ratios_panel
from dltools.report.plots.gantt import gantt_panel
from dltools.report.plots.over_time import limits_panel, progress_panel, responses_panel
from dltools.report.timelines import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("compare", "gantt", "limits", "progress", "responses")
"""The kinds of panels, in order."""

_OVER_TIME: dict[str, Callable[[TimeFrame], Panel | None]] = {
    "gantt": gantt_panel,
    "limits": limits_panel,
    "progress": progress_panel,
    "responses": responses_panel,
}
OVER_TIME = tuple(_OVER_TIME)
"""The kinds whose x axis is the time of a run, with one panel per run."""


def panels(runs: Sequence[Run], kinds: Sequence[str], baseline: str) -> list[Panel]:
    """Return the panels of these kinds for which the runs have data.

    `baseline` is the label of the run that the others are compared with.
    """
    span = max((run.end for run in runs), default=0.0)
    styles = run_styles([run.label for run in runs])
    frames = [TimeFrame(run, span, len(runs) > 1, styles[run.label].colour) for run in runs]
    found: list[Panel | None] = []
    for kind in kinds:
        if kind == "compare":
            found.append(ratios_panel(runs, baseline))
        else:
            found += [_OVER_TIME[kind](frame) for frame in frames]
    return [panel for panel in found if panel is not None]


WIDE, NARROW = 9.0, 3.4
"""Widths in inches for a page or laptop, and for a phone. On a phone's screen of 360 px, letters of
9 points then have 12 px."""
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
        return f"pictures need matplotlib: {command_to_add('matplotlib', Path(sys.prefix))}"
    return ""


def picture(panels: Sequence[Panel], width: float = WIDE) -> Figure:
    """Return the panels below each other in a picture of this width (inches)."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(_STYLE)
    heights = [panel.height for panel in panels]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, ax in zip(panels, axes, strict=True):
        room = width - (_NAMES if width < WIDE else 0.0)
        title = textwrap.wrap(panel.title, round(room * _LETTERS_IN_AN_INCH)) or [""]
        ax.set_title("\n".join(map(safe, title)))
        panel.draw(ax)
    below = [legend_inches(ax) for ax in axes]
    whole = [height + more for height, more in zip(heights, below, strict=True)]
    figure.set_size_inches(width, sum(whole))
    axes[0].get_gridspec().set_height_ratios(whole)
    return figure


_LETTERS_IN_AN_INCH, _NAMES = 11.0, 1.25
"""Most letters of a title, and most inches for the names beside the axes, in a narrow figure."""


def rendered(figure: Figure, format_: str) -> bytes:
    """Return a picture as "png", for a screen of scale 2, "svg" or "pdf". The same runs always give
    the same bytes."""
    scale = 2 if format_ == "png" else 1
    out = io.BytesIO()
    metadata: Mapping[str, Any] = _NO_DATES[format_]
    figure.savefig(out, format=format_, dpi=_DPI * scale, metadata=metadata)
    return out.getvalue()


_NO_DATES: Mapping[str, Mapping[str, Any]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}

_GLOBAL_PIPX = "/opt/pipx"


def command_to_add(package: str, prefix: Path) -> str:
    """Return the command that adds a package to the environment in `prefix` (sys.prefix), which
    pipx, uv or anybody else has made.

    For uv it is not `uv tool install --with`, because that would look up the name dltools in an
    index, where another project may have it.
    """
    if (prefix / "pipx_metadata.json").exists():
        option = " --global" if prefix.is_relative_to(_GLOBAL_PIPX) else ""
        return f"pipx inject{option} {shlex.quote(prefix.name)} {package}"
    place = shlex.quote(str(prefix))
    if (prefix / "uv-receipt.toml").exists():
        return f"uv pip install --python {place} {package}"
    return f"{place}/bin/python3 -m pip install {package}"
