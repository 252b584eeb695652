"""The formats that the tools write: their names, how --format and the name of -o choose one, and
rows as text. The commands declare their --format by it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from dltools.cli.destinations import is_replaceable

_ANY = (".txt",)
"""Suffixes that go with every format."""

_Format = TypeVar("_Format", bound=StrEnum)


def format_option(auto: str, envvar: str | None = None) -> Any:
    """Return the declaration of --format; `auto` says what is chosen by default."""
    return typer.Option("--format", envvar=envvar, help=f"Output format. auto: {auto}.")


_TABLE_OR_JSON = format_option("a table on a terminal, else JSON Lines")


class RecordFormat(StrEnum):
    """The formats of plans and results."""

    AUTO = "auto"
    TABLE = "table"
    JSONL = "jsonl"


class RowFormat(StrEnum):
    """The formats of rows."""

    AUTO = "auto"
    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


RecordFormatOption = Annotated[RecordFormat, _TABLE_OR_JSON]
RowFormatOption = Annotated[RowFormat, _TABLE_OR_JSON]


def format_for_stdout(wanted: _Format) -> _Format:
    """Return the format to print in; auto is a table on a terminal, else JSON Lines."""
    if wanted.value != "auto":
        return wanted
    return type(wanted)("table" if sys.stdout.isatty() else "jsonl")


def format_by_name(
    wanted: _Format, output: str | Path | None, suffixes: Mapping[str, _Format]
) -> _Format:
    """Return the format that --format asks for; for auto, the one that the name of -o ends in, or
    auto where it has no ending. Raises `BadParameter` for an ending of no format, and where the two
    contradict each other."""
    suffix = "" if output is None else Path(output).suffix.lower()
    named = suffixes.get(suffix)
    if wanted.value == "auto":
        if output is not None and suffix and named is None and is_replaceable(Path(output)):
            *others, last = suffixes
            raise typer.BadParameter(
                f"{output}: no format ends in {suffix}: use {', '.join(others)} or {last}"
            )
        return named or wanted
    if named not in (None, wanted) and suffix not in _ANY:
        raise typer.BadParameter(f"{output}: the suffix {suffix} contradicts --format {wanted}")
    return wanted


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
    PDF = "pdf"


_REPORT_SUFFIXES = {
    ".md": ReportFormat.MARKDOWN,
    ".csv": ReportFormat.CSV,
    ".jsonl": ReportFormat.JSONL,
    ".html": ReportFormat.HTML,
    ".svg": ReportFormat.SVG,
    ".png": ReportFormat.PNG,
    ".pdf": ReportFormat.PDF,
    ".txt": ReportFormat.TABLE,
}


def choose_report_format(wanted: ReportFormat, output: Path | None) -> ReportFormat:
    """Return the format to write in. Raises `BadParameter` if the name of -o gives no format or
    contradicts --format, or if a binary format would go to a terminal."""
    chosen = format_by_name(wanted, output, _REPORT_SUFFIXES)
    if chosen is ReportFormat.AUTO and output is not None:
        known = ", ".join(_REPORT_SUFFIXES)
        raise typer.BadParameter(f"{output}: give --format, or end its name in {known}")
    is_binary = chosen in (ReportFormat.PNG, ReportFormat.PDF)
    if is_binary and output is None and sys.stdout.isatty():
        raise typer.BadParameter(
            f"{chosen} is binary and standard output is a terminal; use -o FILE"
        )
    return format_for_stdout(chosen)


Rows = Sequence[Mapping[str, Any]]


def to_jsonl(rows: Rows) -> str:
    """Return rows as JSON Lines."""
    import json  # --help needs none

    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def to_csv(rows: Rows) -> str:
    """Return rows as CSV, with the columns of all of them."""
    import csv

    out = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()
