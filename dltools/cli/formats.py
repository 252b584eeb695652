"""The option --format, and the format that an output gets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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


def for_stdout(wanted: _Format) -> _Format:
    """Return the format to print in; auto is a table on a terminal, else JSON Lines."""
    if wanted.value != "auto":
        return wanted
    return type(wanted)("table" if sys.stdout.isatty() else "jsonl")


def by_name(wanted: _Format, output: str | Path | None, suffixes: Mapping[str, _Format]) -> _Format:
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
