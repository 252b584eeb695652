"""The command line of dl-report: its options, and the exit codes that it can give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dltools.cli import options
from dltools.cli.exits import Exit, exit_codes, guarded, run
from dltools.cli.formats import ReportFormat, choose_report_format, format_option
from dltools.cli.options import Quiet, Version


@guarded
def report(
    context: typer.Context,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[[NAME=]FILE]...",
            help="Recordings, plans, results, or tables of dl-sim --jobs; - is standard input.",
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Baseline run for the ratios; by default noop, else the first."
        ),
    ] = "",
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Print one row per job (the default for a single run).")
    ] = False,
    by: Annotated[
        str,
        typer.Option(
            metavar="GROUP",
            help="Print one row per user, or per job with all its containers: CPU and GPU hours, "
            "energy, waited, finished, failed; GROUP is user or job.",
        ),
    ] = "",
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Say what jobs, or users, cost: FILE has cpu_hour, gpu_hour and kwh, in TOML.",
        ),
    ] = None,
    plot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Kind of picture: compare, gantt, limits, progress, responses, cdf or satisfied. "
            "Repeatable; by default all kinds that have data.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to FILE, completely or not at all."
        ),
    ] = None,
    format_: Annotated[
        ReportFormat,
        format_option(
            "the name of --output decides; else a table on a terminal, JSON Lines in a pipe"
        ),
    ] = ReportFormat.AUTO,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Heading of an HTML page.")] = "",
    quiet: Quiet = False,  # noqa: ARG001
    version: Version = False,  # noqa: ARG001
) -> None:
    """Show runs of jobs as tables, as pictures, or as one HTML page that needs no other file.

    Each recording is a run; so is each policy in a table of dl-sim --jobs. Plans and results belong
    to the recording before them, or to the run of their NAME.
    """
    from dltools.cli.report.run import Request, choose_pictures, run_request

    request = Request(
        inputs=tuple(inputs or ["-"]),
        baseline=baseline,
        is_by_job=jobs,
        by=by,
        prices=prices,
        pictures=choose_pictures(plot or ()),
        output=output,
        format=choose_report_format(format_, output),
        title=title,
    )
    run_request(request, context)


app = options.app(report)


def main() -> None:
    """Run dl-report."""
    run(app)


EXITS = exit_codes(
    {
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "An input is malformed, or shows no job.",
        Exit.UNAVAILABLE: "A picture needs matplotlib, which is not installed.",
        Exit.CONFIG: "The baseline or the kind of picture is unknown, a value is out of range, or "
        "there is nothing to draw.",
    }
)
