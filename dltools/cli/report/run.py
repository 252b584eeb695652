"""Makes a report as a request asks for it, and writes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.cli import destinations
from dltools.cli.printable_output import printable_file
from dltools.cli.report import pages, tables
from dltools.cli.report.formats import ReportFormat
from dltools.cli.report.inputs import load_runs
from dltools.errors import ConfigError
from dltools.report.timelines import Run

if TYPE_CHECKING:
    import typer

    from dltools.cli.report.request import Request

_Renderer = Callable[[Sequence[Run], str, "Request"], bytes]

_RENDERERS: dict[ReportFormat, _Renderer] = {
    ReportFormat.TABLE: tables.table,
    ReportFormat.MARKDOWN: tables.markdown,
    ReportFormat.CSV: tables.csv,
    ReportFormat.JSONL: tables.jsonl,
    ReportFormat.HTML: pages.page,
    ReportFormat.SVG: pages.picture,
    ReportFormat.PNG: pages.picture,
}


def run_request(request: Request, context: typer.Context) -> None:
    """Read the runs, and write the report."""
    runs = load_runs(request.inputs, context)
    baseline = _baseline(request.baseline, runs)
    render = _RENDERERS[request.format]
    _write(render(runs, baseline, request), request.format, request.output)


def _baseline(named: str, runs: Sequence[Run]) -> str:
    names = [one.label for one in runs]
    if named and named not in names:
        raise ConfigError(f"--baseline {named}: no run has this name; known: {', '.join(names)}")
    return named or ("noop" if "noop" in names else names[0])


def _write(data: bytes, format_: ReportFormat, output: Path | None) -> None:
    stdout = nullcontext(sys.stdout.buffer)
    with stdout if output is None else destinations.output_file(output) as out:
        # A table has colours, and its texts have been made printable already.
        (out if format_ is ReportFormat.TABLE else printable_file(out)).write(data)
        out.flush()
