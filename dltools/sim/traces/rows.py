"""Rows of CSV files, with errors that name the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dltools.errors import DataError


class Row(NamedTuple):
    """A row, and where it stands."""

    where: str
    values: dict[str, str]


def columns_of(text: str, name: str) -> Sequence[str]:
    """Return the names of a CSV file's columns. Raises `DataError` for what is no CSV."""
    try:
        return list(csv.DictReader(io.StringIO(text)).fieldnames or ())
    except csv.Error as error:
        raise DataError(f"{name}: {error}") from error


def rows_of(text: str, name: str) -> Iterator[Row]:
    """Yield the rows of a CSV file. Raises `DataError` for what is no CSV."""
    try:
        for line, values in enumerate(csv.DictReader(io.StringIO(text)), 2):
            yield Row(f"{name}: line {line}", values)
    except csv.Error as error:
        raise DataError(f"{name}: {error}") from error


def check_columns(text: str, wanted: Sequence[str], name: str, title: str) -> None:
    """Raise `DataError` for a file that lacks a column."""
    known = columns_of(text, name)
    missing = [column for column in wanted if column not in known]
    if missing:
        raise DataError(f"{name}: not {title}: no column {missing[0]}")
