"""dl-report: tables and pictures of what dl-probe saw, dl-plan decided and dl-sim tried."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dltools.cli import destinations, formats, options
from dltools.cli.console import make_console
from dltools.cli.data import on_screen
from dltools.cli.exits import guarded, run
from dltools.cli.options import Version
from dltools.cli.records import records
from dltools.errors import ConfigError
from dltools.text import writable

if TYPE_CHECKING:
    from dltools.report.run import Run

_MOST_JOBS = 200
"""How many jobs a page lists."""


class Output(StrEnum):
    """What --format may be."""

    AUTO = "auto"
    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSONL = "jsonl"
    HTML = "html"
    SVG = "svg"
    PNG = "png"


_SUFFIXES = {".md": Output.MARKDOWN, ".csv": Output.CSV, ".jsonl": Output.JSONL,
             ".html": Output.HTML, ".svg": Output.SVG, ".png": Output.PNG,
             ".txt": Output.TABLE}  # fmt: skip


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
            metavar="NAME", help="The run that ratios are to; by default noop, else the first."
        ),
    ] = "",
    jobs: Annotated[
        bool, typer.Option("--jobs", help="A row per job, which one run alone has anyway.")
    ] = False,
    plot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="What a picture shows: compare, gantt, limits, progress, cdf or satisfied. "
            "Repeatable; by default all for which there are data.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to a file, all or nothing."),
    ] = None,
    format_: Annotated[
        Output,
        typer.Option(
            "--format",
            help="auto: as the name of --output ends; else a table on a terminal, JSON Lines in a "
            "pipe.",
        ),
    ] = Output.AUTO,
    scale: Annotated[
        float, typer.Option(metavar="N", help="With png: dots as for a screen of scale N.")
    ] = 1.0,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Heading of a page.")] = "",
    version: Version = False,  # noqa: ARG001
) -> None:
    """Show runs of jobs: tables, pictures, or one page that needs nothing else.

    A recording is a run; so is each policy in a table of dl-sim --jobs. Plans and results belong
    to the recording before them, or to the one of their NAME.
    """
    from dltools.cli.report.runs import runs_of

    if output is not None:
        destinations.check(output)
    shape = _shape(format_, output)
    kinds = _kinds(plot)
    if not 0.1 <= scale <= 10:
        raise ConfigError("--scale is from 0.1 to 10")
    runs = runs_of(inputs or ["-"], context)
    base = _baseline(baseline, runs)
    if shape in (Output.PNG, Output.SVG):
        _write(_picture(runs, kinds, base, shape, scale), shape, output)
    elif shape is Output.HTML:
        _write(_page(runs, kinds, base, title).encode(), shape, output)
    else:
        _write(_table(_rows(runs, base, jobs=jobs), shape), shape, output)


def _shape(wanted: Output, output: Path | None) -> Output:
    wanted = formats.by_name(wanted, output, _SUFFIXES)
    if wanted is Output.AUTO and output is not None:
        known = ", ".join(_SUFFIXES)
        raise typer.BadParameter(f"{output}: give --format, or end its name in {known}")
    terminal = output is None and sys.stdout.isatty()
    if wanted is Output.AUTO:
        return Output.TABLE if terminal else Output.JSONL
    if wanted is Output.PNG and terminal:
        raise typer.BadParameter("png is binary and standard output is a terminal; use -o FILE")
    return wanted


def _kinds(plot: Sequence[str] | None) -> list[str]:
    from dltools.report.plots.kinds import KINDS

    for kind in plot or ():
        if kind not in KINDS:
            raise ConfigError(f"--plot {kind}: one of {', '.join(KINDS)}")
    return [kind for kind in KINDS if not plot or kind in plot]


def _baseline(named: str, runs: Sequence[Run]) -> str:
    labels = [one.label for one in runs]
    if named and named not in labels:
        raise ConfigError(f"--baseline {named}: no run is called so; known: {', '.join(labels)}")
    return named or ("noop" if "noop" in labels else labels[0])


def _rows(runs: Sequence[Run], baseline: str, *, jobs: bool) -> list[dict[str, Any]]:
    from dltools.report.comparison import by_job

    if jobs or len(runs) == 1:
        longest = max(len(one.repeats) for one in runs)
        rows = by_job({one.label: one.repeats for one in runs}, range(longest), "run")
        return _with_limits(rows, runs)
    return _summaries(runs, baseline)


def _with_limits(rows: list[dict[str, Any]], runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Add the limits that a job had when it was last seen, where some job had any."""
    from dltools.cli.words import described

    found = {(one.label, name): timeline.settings
             for one in runs for name, timeline in one.timelines.items()}  # fmt: skip
    if not any(found.values()):
        return rows

    def told(row: Mapping[str, Any]) -> str | None:
        settings = found.get((row["run"], row["name"]))
        return None if settings is None else described(settings) if settings else "no limit"

    return [row | {"limits": told(row)} for row in rows]


def _summaries(runs: Sequence[Run], baseline: str) -> list[dict[str, Any]]:
    from dltools.report.comparison import by_policy

    found = {one.label: one.repeats for one in runs}
    actions = {one.label: ", ".join(f"{count} {status}" for status, count in one.results.items())
               for one in runs}  # fmt: skip
    rows = by_policy(found, baseline, "run")
    return [row | ({"actions": actions[row["run"]]} if actions[row["run"]] else {})
            for row in rows]  # fmt: skip


def _table(rows: Sequence[Mapping[str, Any]], shape: Output) -> bytes:
    if shape is Output.TABLE:
        from dltools.cli.runs_table import runs_table

        console = make_console()
        with console.capture() as captured:
            console.print(runs_table(rows))
        text: str = captured.get()
        return text.encode()
    if shape is Output.MARKDOWN:
        from dltools.report.cells import cells, markdown

        return markdown(cells(rows)).encode()
    return records(rows, as_csv=shape is Output.CSV).encode()


def _picture(
    runs: Sequence[Run], kinds: Sequence[str], baseline: str, shape: Output, scale: float
) -> bytes:
    from dltools.report.plots.figure import picture, rendered
    from dltools.report.plots.kinds import panels

    chosen = panels(runs, kinds, baseline)
    if not chosen:
        raise ConfigError(f"nothing to draw: these runs have no data for {', '.join(kinds)}")
    return rendered(picture(chosen), shape.value, scale)


def _page(runs: Sequence[Run], kinds: Sequence[str], baseline: str, title: str) -> str:
    from dltools import __version__
    from dltools.report.cells import cells
    from dltools.report.page import page
    from dltools.report.plots.figure import picture, rendered
    from dltools.report.plots.kinds import OVER_TIME, panels

    tables = []
    if len(runs) > 1 or any(one.results for one in runs):
        heading = f"Runs, ratios to {baseline}" if len(runs) > 1 else "Run"
        tables.append((heading, cells(_summaries(runs, baseline))))
    rows = _rows(runs, baseline, jobs=True)
    heading = "Jobs" if len(rows) <= _MOST_JOBS else f"The first {_MOST_JOBS} of {len(rows)} jobs"
    tables.append((heading, cells(rows[:_MOST_JOBS])))
    pictures = []
    # Those over time in one picture, so that their axes are in line.
    for _, group in groupby(kinds, lambda kind: "" if kind in OVER_TIME else kind):
        if chosen := panels(runs, list(group), baseline):
            heading = "; ".join(panel.title for panel in chosen)
            pictures.append((heading, rendered(picture(chosen), "svg")))
    return page(writable(title) or _title(runs), tables, pictures, f"dltools {__version__}")


def _title(runs: Sequence[Run]) -> str:
    return f"{len(runs)} runs: {_listed(one.label for one in runs)}" if len(runs) > 1 else (
        runs[0].label)  # fmt: skip


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(labels)


def _write(data: bytes, shape: Output, output: Path | None) -> None:
    stdout = nullcontext(sys.stdout.buffer)
    with stdout if output is None else destinations.output_file(output) as out:
        # A table has colours, and its texts have been made printable already.
        (out if shape is Output.TABLE else on_screen(out)).write(data)
        out.flush()


app = options.app(report)


def main() -> None:
    """Run dl-report."""
    run(app)
