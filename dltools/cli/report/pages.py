"""Reports as pictures and as HTML pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dltools import __version__
from dltools.cli.report.tables import rows_by_job, rows_by_run
from dltools.errors import ConfigError
from dltools.report import cells
from dltools.report.page import Picture, Table
from dltools.report.page import page as html_page
from dltools.text import writable

if TYPE_CHECKING:
    from dltools.cli.report.request import Request
    from dltools.report.timelines import Run

_MOST_JOBS = 200
"""How many jobs a page lists."""


def picture(runs: Sequence[Run], baseline: str, request: Request) -> bytes:
    """Return an SVG or PNG. Raises `ConfigError` where the runs have no data for it."""
    from dltools.report.plots import figure
    from dltools.report.plots.figure import panels

    chosen = panels(runs, request.pictures, baseline)
    if not chosen:
        kinds = ", ".join(request.pictures)
        raise ConfigError(f"nothing to draw: these runs have no data for {kinds}")
    return figure.rendered(figure.picture(chosen), request.format.value, request.scale)


def page(runs: Sequence[Run], baseline: str, request: Request) -> bytes:
    """Return an HTML page that needs no other file."""
    title = writable(request.title) or _default_title(runs)
    pictures = list(_pictures(runs, baseline, request.pictures))
    made_by = f"dltools {__version__}"
    return html_page(title, list(_tables(runs, baseline)), pictures, made_by).encode()


def _tables(runs: Sequence[Run], baseline: str) -> Iterator[Table]:
    if len(runs) > 1 or any(one.results for one in runs):
        heading = f"Runs, ratios to {baseline}" if len(runs) > 1 else "Run"
        yield Table(heading, cells.cells(rows_by_run(runs, baseline)))
    rows = rows_by_job(runs)
    heading = "Jobs" if len(rows) <= _MOST_JOBS else f"The first {_MOST_JOBS} of {len(rows)} jobs"
    yield Table(heading, cells.cells(rows[:_MOST_JOBS]))


def _pictures(runs: Sequence[Run], baseline: str, kinds: Sequence[str]) -> Iterator[Picture]:
    """Yield headings and SVGs; those over time are one picture, so that their axes are in line."""
    from dltools.report.plots import figure
    from dltools.report.plots.figure import OVER_TIME, panels

    for _, group in groupby(kinds, lambda kind: "" if kind in OVER_TIME else kind):
        if chosen := panels(runs, list(group), baseline):
            heading = "; ".join(panel.title for panel in chosen)
            yield Picture(heading, figure.rendered(figure.picture(chosen), "svg"))


def _default_title(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return runs[0].label
    return f"{len(runs)} runs: {', '.join(one.label for one in runs)}"
