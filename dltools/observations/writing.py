"""Writing observations in any format, sample by sample."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from dltools.notation.json_numbers import to_json_number
from dltools.notation.times import format_time
from dltools.observations.prometheus import prometheus_text
from dltools.observations.schema import COLUMNS, NAMES, Type, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_GROUP = 50_000


class Format(StrEnum):
    """A way to write observations."""

    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"
    CSV = "csv"
    PROM = "prom"


class Writer(Protocol):
    """Writes samples one after the other; `close` completes the output."""

    def write(self, table: pa.Table) -> None:
        """Write one sample; what it returns from has been handed to the system."""

    def close(self) -> None:
        """Complete the output. The underlying stream stays open."""


def writer(format_: Format, out: BinaryIO) -> Writer:
    """Return a writer of a format; nothing is written before the first sample."""
    kinds: dict[Format, Callable[[BinaryIO], Writer]] = {
        Format.PARQUET: _ParquetWriter,
        Format.ARROW: _ArrowWriter,
        Format.JSONL: _JsonlWriter,
        Format.CSV: _CsvWriter,
        Format.PROM: _PromWriter,
    }
    return kinds[format_](out)


class _ParquetWriter:
    """Gathers samples into large row groups: one a sample would cost 4 times the bytes."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._waiting: list[pa.Table] = []
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table)
        if sum(part.num_rows for part in self._waiting) >= _ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._out.flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._waiting:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._out, arrow_schema(), compression="zstd", write_page_checksum=True
            )
        self._writer.write_table(pa.concat_tables(self._waiting).unify_dictionaries())
        self._waiting.clear()


class _ArrowWriter:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        import pyarrow as pa

        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._out, arrow_schema())
        if table.num_rows:
            self._writer.write_batch(table.combine_chunks().to_batches()[0])
        self._out.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._out.flush()


class _JsonlWriter:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            record = {key: _to_json(value) for key, value in row.items() if value is not None}
            self._out.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode())
            self._out.write(b"\n")
        self._out.flush()

    def close(self) -> None:
        self._out.flush()


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    return to_json_number(value) if isinstance(value, float) else value


class _CsvWriter:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._header = True

    def write(self, table: pa.Table) -> None:
        import pyarrow as pa
        from pyarrow import csv

        table = table.combine_chunks()  # Arrow writes rubbish for an empty chunk
        plain = [
            table.column(c.name).cast(pa.string()) if c.type is Type.NAME else table.column(c.name)
            for c in COLUMNS
        ]
        csv.write_csv(
            pa.table(plain, names=NAMES),
            self._out,
            csv.WriteOptions(include_header=self._header, quoting_style="needed"),
        )
        self._header = False
        self._out.flush()

    def close(self) -> None:
        self._out.flush()


class _PromWriter:
    """Prometheus text: the newest values, no times."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, table: pa.Table) -> None:
        self._out.write(prometheus_text(table.to_pylist()).encode())
        self._out.flush()

    def close(self) -> None:
        self._out.flush()
