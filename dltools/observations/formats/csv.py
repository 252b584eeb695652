"""Observations as CSV, one line for each row."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, BinaryIO

from dltools.bounded_reading import read_whole
from dltools.errors import DataError
from dltools.input_kinds import CSV_MARKS
from dltools.observations.formats.base import (
    EncodingWriter,
    Format,
    PrefixedStream,
    Reader,
    decoding,
)
from dltools.observations.schema import COLUMNS, NAMES, Type, arrow_schema
from dltools.observations.table import conform

if TYPE_CHECKING:
    import pyarrow as pa


class CsvWriter(EncodingWriter):
    """Writes the header before the first sample, then each sample at once."""

    def __init__(self, out: BinaryIO) -> None:
        super().__init__(out, self._lines)
        self._has_header = False

    def _lines(self, table: pa.Table) -> bytes:
        import pyarrow as pa
        from pyarrow import csv

        table = table.combine_chunks()  # Arrow writes rubbish for an empty chunk
        plain = [
            table.column(c.name).cast(pa.string()) if c.type is Type.NAME else table.column(c.name)
            for c in COLUMNS
        ]
        lines = io.BytesIO()
        csv.write_csv(
            pa.table(plain, names=NAMES),
            lines,
            csv.WriteOptions(include_header=not self._has_header, quoting_style="needed"),
        )
        self._has_header = True
        return lines.getvalue()


def _begins(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").startswith(CSV_MARKS)


def _tables(stream: PrefixedStream, name: str, _: Collection[str] | None) -> Iterator[pa.Table]:
    import pyarrow as pa
    from pyarrow import csv

    data = read_whole(stream, name)
    if not data.endswith(b"\n"):
        raise DataError(f"{name}: CSV cut off: its last line has no end")
    types = {
        c.name: pa.string() if c.type is Type.NAME else arrow_schema().field(c.name).type
        for c in COLUMNS
    }
    with decoding(name, "CSV"):
        table = csv.read_csv(
            pa.BufferReader(data),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        table = conform(table, name)
    yield table


FORMAT = Format("csv", "CSV", (".csv",), CsvWriter, (Reader(_begins, _tables),))
