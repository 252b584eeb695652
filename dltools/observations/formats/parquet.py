"""Observations as a Parquet file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from dltools.errors import DataError
from dltools.input_kinds import PARQUET_MARK
from dltools.observations.formats.base import Format, PrefixedStream, Reader, decoding
from dltools.observations.schema import COLUMNS, NAMES, Type, arrow_schema
from dltools.observations.table import conform

if TYPE_CHECKING:
    import pyarrow as pa

FEWEST_ROWS = 50_000
"""Rows that are gathered before they are written: a row group for each sample would cost four
times the bytes and two hundred times the reading time (measured)."""

MOST_ROWS = 122_880
"""Rows of a row group at most."""


class ParquetFile:
    """A Parquet file that is being written: zstd, floats split by byte, checksums.

    It begins with the next bytes written to `file`, and is complete when the block ends; `file`
    stays open.
    """

    def __init__(self, file: IO[bytes]) -> None:
        import pyarrow.parquet as pq

        self._writer: Any = pq.ParquetWriter(
            file,
            arrow_schema(),
            compression="zstd",
            use_dictionary=[column.name for column in COLUMNS if column.type is Type.NAME],
            use_byte_stream_split=[column.name for column in COLUMNS if column.type is Type.FLOAT],
            write_page_checksum=True,
        )

    def add(self, table: pa.Table) -> None:
        """Write rows as a row group of their own, or as several where there are many."""
        self._writer.write_table(table.unify_dictionaries(), MOST_ROWS)

    def __enter__(self) -> ParquetFile:
        """Return the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Write the footer."""
        self._writer.close()


class ParquetWriter:
    """Gathers samples and writes them as large row groups."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._waiting: list[pa.Table] = []
        self._file: ParquetFile | None = None

    def write(self, table: pa.Table) -> None:
        """Take one sample; it is written when enough rows have come, or at the end."""
        self._waiting.append(table)
        if sum(part.num_rows for part in self._waiting) >= FEWEST_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the footer."""
        self._flush()
        if self._file is not None:
            self._file.__exit__()
            self._out.flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        if self._file is None:
            self._file = ParquetFile(self._out)
        self._file.add(pa.concat_tables(self._waiting))
        self._waiting.clear()


def _tables(
    stream: PrefixedStream, name: str, columns: Collection[str] | None
) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with decoding(name, "Parquet file"):
        file = pq.ParquetFile(pa.BufferReader(stream.read()))
        names = [name for name in NAMES if columns is None or name in columns]
        present = [column for column in names if column in file.schema_arrow.names]
        parts = _parts_in_order(file)
    newest: Any = None
    for groups in parts:
        with decoding(name, "Parquet file"):
            table = file.read_row_groups(groups, columns=present)
            table.validate(full=True)
            table = conform(table, name, names)
            times = table.column("time")
            if newest is not None and len(times) and times[0].as_py() < newest:
                raise DataError(f"{name}: the statistics of its row groups are wrong")
            newest = times[-1].as_py() if len(times) else newest
        yield table


def _parts_in_order(file: Any) -> list[list[int]]:
    """Return the numbers of the row groups: each by itself where they follow each other in time, so
    that a reader need not hold all of them; else all together."""
    numbers = list(range(file.num_row_groups))
    column = file.schema.names.index("time") if "time" in file.schema.names else None
    if column is None or len(numbers) < 2:
        return [numbers]
    spans = [file.metadata.row_group(number).column(column).statistics for number in numbers]
    if not all(span is not None and span.has_min_max for span in spans):
        return [numbers]
    follow = all(before.max <= after.min for before, after in pairwise(spans))
    return [[number] for number in numbers] if follow else [numbers]


FORMAT = Format(
    "parquet",
    "Parquet",
    (".parquet",),
    ParquetWriter,
    (Reader(lambda head: head.startswith(PARQUET_MARK), _tables),),
    is_binary=True,
)
