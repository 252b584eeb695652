"""dl-report: what it does, and the exit codes that it can give."""

from __future__ import annotations

from dltools.cli import exits, options
from dltools.cli.exits import Exit, exit_codes
from dltools.cli.report.request import Request


def report(request: Request) -> None:
    """Show runs of jobs as tables, as pictures, or as one self-contained HTML page.

    Each recording is a run; so is each policy in a table of dl-sim --jobs. Plans and results belong
    to the recording before them, or to the run of their NAME.
    """
    from dltools.cli.report.run import run_request

    run_request(request)


app = options.app(report, Request)


def main() -> None:
    """Run dl-report."""
    exits.run(app)


EXITS = exit_codes(
    {
        Exit.USAGE: "Wrong usage, or standard input is a terminal.",
        Exit.DATA: "An input is malformed, or contains no job.",
        Exit.UNAVAILABLE: "A picture needs matplotlib, which is not installed.",
        Exit.CONFIG: "The baseline or the kind of picture is unknown, a value is out of range, or "
        "there is nothing to draw.",
    }
)
