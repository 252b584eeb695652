"""Reading observations of any format, which their first bytes tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from dltools.contents import refusal
from dltools.errors import DataError
from dltools.observations.formats.prefixed_stream import PrefixedStream, read_exactly
from dltools.observations.formats.registry import formats
from dltools.observations.table import concat

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Recording:
    """Observations being read.

    `streaming`: each table is a sample of its own as it arrives (an Arrow stream); otherwise the
    one table is the whole recording. Iterating may raise `DataError`.
    """

    streaming: bool
    tables: Iterator[pa.Table]


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
