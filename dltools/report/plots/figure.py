"""Panels as one picture, and the picture as a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.errors import UnavailableError
from dltools.report.plots.axes import safe
from dltools.report.plots.missing import command_to_add
from dltools.report.plots.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 9.0  # inches
_DPI = 100
_STYLE = {
    "svg.hashsalt": "dltools",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "hatch.linewidth": 0.6,
}


def picture(panels: Sequence[Panel]) -> Figure:
    """Return panels below each other. Raises `UnavailableError` without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        how = command_to_add("matplotlib", Path(sys.prefix))
        raise UnavailableError(
            f"pictures need matplotlib: {how}; or choose table, markdown or csv"
        ) from error
    matplotlib.rcParams.update(_STYLE)
    heights = [panel.height for panel in panels]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, ax in zip(panels, axes, strict=True):
        ax.set_title(safe(panel.title))
        panel.draw(ax)
    return figure


def rendered(figure: Figure, format_: str, scale: float = 1.0) -> bytes:
    """Return a picture as "png" or "svg". The same runs always give the same bytes."""
    out = io.BytesIO()
    metadata: Mapping[str, Any] = {"Date": None} if format_ == "svg" else {"Software": None}
    figure.savefig(out, format=format_, dpi=_DPI * scale, metadata=metadata)
    return out.getvalue()
