"""The formats of observations, a line for each, and reading an input of any of them.

The tools choose a format for their output by its name; they recognise that of an input by its
first bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

from dltools.errors import DataError
from dltools.input_kinds import refusal
from dltools.observations.formats.base import PrefixedStream, read_exactly
from dltools.observations.table import concat

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.observations.formats.base import Format

_MODULES = {
    "parquet": "parquet",
    "arrow": "arrow",
    "jsonl": "jsonl",
    "csv": "csv",
    "prom": "prometheus",
}
"""The module of each format by its name; it is imported when the format is used. Its constant
FORMAT is the format."""

NAMES = tuple(_MODULES)


def get_format(name: str) -> Format:
    """Return the format of a name."""
    return formats()[name]


@cache
def formats() -> dict[str, Format]:
    """Return every format by its name."""
    return {
        name: import_module(f"dltools.observations.formats.{module}").FORMAT
        for name, module in _MODULES.items()
    }


_HEAD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Recording:
    """Observations being read."""

    streaming: bool
    """Whether each table is a sample of its own as it arrives (an Arrow stream); else they are
    parts of a recording, in order of time."""

    tables: Iterator[pa.Table]
    """The tables; iterating may raise `DataError`."""


def read(stream: BinaryIO, name: str, columns: Collection[str] | None = None) -> Recording:
    """Open observations of any format; `name` stands for them in messages.

    Of a Parquet file only these columns are read, where they are given; its tables have no others.
    Raises `DataError` for what is in none of the formats.
    """
    head = read_exactly(stream, _HEAD_BYTES)
    if not head:
        raise DataError(f"{name}: empty input: no observations")
    for format_ in formats().values():
        for reader in format_.readers:
            if reader.begins(head):
                tables = reader.tables(PrefixedStream(head, stream), name, columns)
                return Recording(reader.is_stream, tables)
    if reason := refusal(head):
        raise DataError(f"{name}: {reason}")
    *titles, last = (format_.title for format_ in formats().values() if format_.readers)
    raise DataError(f"{name}: not dltools observations: neither {', '.join(titles)} nor {last}")


def read_table(stream: BinaryIO, name: str) -> pa.Table:
    """Read a whole recording into one table, sorted by time. Raises `DataError`."""
    return concat(read(stream, name).tables)
