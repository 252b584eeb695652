"""The formats that the tools write: their names, how --format and the name of -o choose one, and
rows as text."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from dltools.cli.destinations import is_replaceable
from dltools.errors import OutputError
from dltools.observations.formats import registry

_ANY = (".txt",)
"""Suffixes that go with every format."""

_Format = TypeVar("_Format", bound=StrEnum)


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


def format_for_stdout(option: _Format) -> _Format:
    """Return the format to print in; auto is a table on a terminal, else JSON Lines."""
    if option.value != "auto":
        return option
    return type(option)("table" if sys.stdout.isatty() else "jsonl")


def format_by_name(
    option: _Format, output: str | Path | None, suffixes: Mapping[str, _Format]
) -> _Format:
    """Return the format that --format asks for; for auto, the one that the name of -o ends in, or
    auto where it has no ending. Raises `BadParameter` for an ending of no format, and where the two
    contradict each other."""
    suffix = "" if output is None else Path(output).suffix.lower()
    named = suffixes.get(suffix)
    if option.value == "auto":
        if output is not None and suffix and named is None and is_replaceable(Path(output)):
            *others, last = suffixes
            raise typer.BadParameter(
                f"{output}: no format ends in {suffix}: use {', '.join(others)} or {last}"
            )
        return named or option
    if named not in (None, option) and suffix not in _ANY:
        raise typer.BadParameter(f"{output}: the suffix {suffix} contradicts --format {option}")
    return option


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


def choose_report_format(option: ReportFormat, output: Path | None) -> ReportFormat:
    """Return the format to write in. Raises `BadParameter` if the name of -o gives no format or
    contradicts --format, or if a binary format would go to a terminal."""
    chosen = format_by_name(option, output, _REPORT_SUFFIXES)
    if chosen is ReportFormat.AUTO and output is not None:
        endings = ", ".join(_REPORT_SUFFIXES)
        raise typer.BadParameter(f"{output}: give --format, or end its name in {endings}")
    if output is None and sys.stdout.isatty():
        _check_terminal(chosen, is_binary=chosen in (ReportFormat.PNG, ReportFormat.PDF))
    return format_for_stdout(chosen)


def _check_terminal(chosen: StrEnum, *, is_binary: bool) -> None:
    if is_binary:
        raise typer.BadParameter(
            f"{chosen} is binary and standard output is a terminal; use -o FILE or a pipe"
        )


if TYPE_CHECKING:

    class ObservationFormat(StrEnum):
        """The formats of observations: these, and those of the registry by their names."""

        AUTO = "auto"
        TABLE = "table"

else:
    ObservationFormat = StrEnum(
        "ObservationFormat",
        {"AUTO": "auto", "TABLE": "table", **{name.upper(): name for name in registry.NAMES}},
    )

WHOLE, STREAM = ObservationFormat("parquet"), ObservationFormat("arrow")
"""The defaults for a file or a pipe: for one sample, and for a stream of samples."""


def suffixes() -> dict[str, ObservationFormat]:
    """Return the formats by the suffixes of file names."""
    return {
        suffix: ObservationFormat(format_.name)
        for format_ in registry.formats().values()
        for suffix in format_.suffixes
    }


def choose_observation_format(
    option: ObservationFormat, output: str | None, *, is_stream: bool
) -> ObservationFormat:
    """Return the format to write in. Raises `BadParameter` for binary output on a terminal, and for
    a directory in another format than Parquet; `OutputError` for an impossible directory."""
    if output is not None and is_directory(output):
        _check_directory(output, option)
        return WHOLE
    to_terminal = output is None and sys.stdout.isatty()
    chosen = format_by_name(option, output, suffixes())
    if chosen is ObservationFormat.AUTO:
        if to_terminal:
            return ObservationFormat.TABLE
        return STREAM if is_stream else WHOLE
    if to_terminal and chosen.value in registry.NAMES:
        _check_terminal(chosen, is_binary=registry.get_format(chosen).is_binary)
    return chosen


def is_directory(output: str) -> bool:
    """Tell whether -o names a directory of recordings: one that exists, or ends in a slash."""
    return output.endswith("/") or Path(output).is_dir()


def _check_directory(output: str, option: ObservationFormat) -> None:
    if not output:
        raise OutputError("cannot create the output: its name is empty")
    if Path(output).exists() and Path(output).samefile("/"):
        raise OutputError(f"cannot create {output}: it is the root directory; name another")
    if option not in (ObservationFormat.AUTO, WHOLE):
        raise typer.BadParameter(f"a directory holds Parquet, not {option}; use -o FILE")


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
