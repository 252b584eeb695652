"""Reports as a dl-report command line asks for: reads the runs, writes a table, picture or page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from dltools import __version__
from dltools.cli import destinations
from dltools.cli.destinations import printable_file
from dltools.cli.exits import print_message
from dltools.cli.formats import ReportFormat, to_csv, to_jsonl
from dltools.cli.remarks import tracked
from dltools.cli.report import tables
from dltools.cli.report.loading import load_runs
from dltools.errors import ConfigError, UnavailableError
from dltools.report import result_tables
from dltools.report.page import Picture, Table, page
from dltools.report.plots import figure
from dltools.report.plots.figure import panels, why_no_pictures
from dltools.report.timelines import Run
from dltools.text import listed

if TYPE_CHECKING:
    from dltools.cli.report.request import Request

_PICTURES = (ReportFormat.SVG, ReportFormat.PNG, ReportFormat.PDF)

_MOST_JOBS = 200
"""How many jobs a page lists."""


def run_request(request: Request) -> None:
    """Read the runs, and write the report."""
    lacking = _lacking(request.format)
    runs = load_runs(tracked("reading", request.inputs, len(request.inputs)))
    report = _rendered(runs, _baseline(request.baseline, runs), request, lacking)
    stdout = nullcontext(sys.stdout.buffer)
    with stdout if request.output is None else destinations.output_file(request.output) as out:
        # A table has colours, and its texts have been made printable already.
        is_table = request.format is ReportFormat.TABLE
        (out if is_table else printable_file(out)).write(report)
        out.flush()


def _lacking(format_: ReportFormat) -> str:
    """Return what a page lacks without matplotlib, and say it. Raises `UnavailableError` for a
    picture."""
    lacking = why_no_pictures() if format_ in (*_PICTURES, ReportFormat.HTML) else ""
    if lacking and format_ in _PICTURES:
        raise UnavailableError(f"{lacking}; or choose html, table, markdown or csv")
    if lacking:
        print_message(f"the page has only tables: {lacking}")
    return lacking


def _rendered(runs: Sequence[Run], baseline: str, request: Request, lacking: str) -> bytes:
    """Return a report in the format asked for; `lacking` says why a page has no pictures."""
    if request.format in _PICTURES:
        picture = _picture(runs, request)
        if picture is None:
            kinds = ", ".join(request.pictures)
            raise ConfigError(f"nothing to draw: these runs have no data for {kinds}")
        return picture.drawn
    if request.format is ReportFormat.HTML:
        return _page(runs, baseline, request, lacking)
    if not (request.by or request.is_by_job or request.prices) and len(runs) > 1:
        rows = tables.rows_by_run(runs, baseline)
    else:
        by = request.by
        rows = tables.rows_by_group(runs, by) if by else tables.rows_by_job(runs)
        rows = rows if request.prices is None else tables.read_prices(request.prices).added(rows)
    if request.format is ReportFormat.TABLE:
        return tables.table(rows)
    if request.format is ReportFormat.MARKDOWN:
        return tables.markdown(rows)
    return (to_csv(rows) if request.format is ReportFormat.CSV else to_jsonl(rows)).encode()


def _baseline(named: str, runs: Sequence[Run]) -> str:
    names = [run.label for run in runs]
    if named and named not in names:
        raise ConfigError(f"--baseline {named}: no run has this name; known: {listed(names)}")
    return named or ("noop" if "noop" in names else names[0])


def _picture(runs: Sequence[Run], request: Request) -> Picture | None:
    """Return the picture asked for, an SVG for a page; None where the runs have no data for it."""
    chosen = panels(runs, request.pictures)
    if not chosen:
        return None
    format_ = request.format.value if request.format in _PICTURES else "svg"
    heading = "; ".join(panel.title for panel in chosen)
    return Picture(heading, figure.rendered(figure.picture(chosen), format_))


def _page(runs: Sequence[Run], baseline: str, request: Request, lacking: str) -> bytes:
    """Return an HTML page that needs no other file."""
    names = [run.label for run in runs]
    title = names[0] if len(names) == 1 else f"{len(names)} runs: {listed(names)}"
    picture = None if lacking else _picture(runs, request)
    footer = "; ".join(filter(None, (f"dltools {__version__}", lacking)))
    return page(title, list(_tables(runs, baseline)), picture, footer).encode()


def _tables(runs: Sequence[Run], baseline: str) -> Iterator[Table]:
    if len(runs) > 1 or any(run.results for run in runs):
        heading = f"Runs, ratios to {baseline}" if len(runs) > 1 else "Run"
        yield Table(heading, result_tables.cells(tables.rows_by_run(runs, baseline)))
    if any(job.user for run in runs for job in run.jobs):
        yield Table("Users", result_tables.cells(tables.rows_by_group(runs, "user")))
    rows = tables.rows_by_job(runs)
    heading = "Jobs" if len(rows) <= _MOST_JOBS else f"The first {_MOST_JOBS} of {len(rows)} jobs"
    yield Table(heading, result_tables.cells(rows[:_MOST_JOBS]))
