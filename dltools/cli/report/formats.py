"""The formats of reports."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

import typer

from dltools.cli import formats


class ReportFormat(StrEnum):
    """The formats of reports: tables, pictures and pages."""

    AUTO = "auto"
    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSONL = "jsonl"
    HTML = "html"
    SVG = "svg"
    PNG = "png"


_SUFFIXES = {
    ".md": ReportFormat.MARKDOWN,
    ".csv": ReportFormat.CSV,
    ".jsonl": ReportFormat.JSONL,
    ".html": ReportFormat.HTML,
    ".svg": ReportFormat.SVG,
    ".png": ReportFormat.PNG,
    ".txt": ReportFormat.TABLE,
}


def choose_format(wanted: ReportFormat, output: Path | None) -> ReportFormat:
    """Return the format to write in. Raises `BadParameter` where the name of -o does not say it,
    contradicts it, and where it is binary and goes to a terminal."""
    chosen = formats.by_name(wanted, output, _SUFFIXES)
    if chosen is ReportFormat.AUTO and output is not None:
        known = ", ".join(_SUFFIXES)
        raise typer.BadParameter(f"{output}: give --format, or end its name in {known}")
    if chosen is ReportFormat.PNG and output is None and sys.stdout.isatty():
        raise typer.BadParameter("png is binary and standard output is a terminal; use -o FILE")
    return formats.for_stdout(chosen)
