"""Reading observations of any format, recognised by their first bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from dltools.errors import DataError
from dltools.inputs import Readable, read_lines, read_whole
from dltools.notation.json_numbers import from_json_number
from dltools.notation.times import parse_time
from dltools.observations.schema import COLUMNS, NAMES, REQUIRED, VERSION_KEY, Type, arrow_schema
from dltools.observations.table import Row, check_version, conform, first_line, sort

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Recording:
    """Observations being read.

    `streaming` tells whether each table is a sample of its own as it arrives (an Arrow stream) or
    the whole recording. Iterating may raise `DataError`.
    """

    streaming: bool
    tables: Iterator[pa.Table]


def read(stream: BinaryIO, name: str, columns: Collection[str] | None = None) -> Recording:
    """Open observations of any format; `name` stands for them in messages.

    Of a Parquet file only these columns are read, where they are given; its tables have no others.
    """
    head = _read_exactly(stream, 8)
    if not head:
        raise DataError(f"{name}: empty input: no observations")
    if head.startswith(b"\xff\xff\xff\xff"):
        return Recording(True, _read_stream(_Prefixed(head, stream), name))
    if head.startswith(b"PAR1"):
        return Recording(False, _read_parquet(head + stream.read(), name, columns))
    if head.startswith(b"ARROW1"):
        return Recording(False, _read_arrow_file(head + stream.read(), name))
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return Recording(False, _read_jsonl(_Prefixed(head, stream), name))
    if head.removeprefix(b"\xef\xbb\xbf").startswith((b"time,", b'"time"')):
        return Recording(False, _read_csv(read_whole(_Prefixed(head, stream), name), name))
    raise DataError(f"{name}: not dltools observations: neither Parquet, Arrow, JSON Lines nor CSV")


def read_table(stream: BinaryIO, name: str) -> pa.Table:
    """Read a whole recording into one table, sorted by time."""
    return concat(read(stream, name).tables)


def concat(tables: Iterable[pa.Table]) -> pa.Table:
    """Return tables of a recording as one, sorted by time."""
    import pyarrow as pa

    found = list(tables)
    if not found:
        return arrow_schema().empty_table()
    return sort(pa.concat_tables(found).unify_dictionaries())


class _Prefixed(io.RawIOBase):
    """A stream with the bytes that were read for sniffing put back."""

    def __init__(self, head: bytes, rest: BinaryIO | io.RawIOBase) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        head, self._head = self._head[:size], self._head[size:]
        return head if len(head) == size else head + _read_exactly(self._rest, size - len(head))


def _read_exactly(stream: BinaryIO | io.RawIOBase, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@contextmanager
def _reading(name: str, what: str) -> Iterator[None]:
    """Turn whatever a decoder raises on hostile bytes into one line."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # Arrow alone has a dozen kinds for damaged input
        reason = first_line(error)
        raise DataError(f"{name}: damaged or truncated {what}: {reason}") from error


def _read_stream(stream: _Prefixed, name: str) -> Iterator[pa.Table]:
    """Yield each batch; recordings joined by cat are read one after the other."""
    import pyarrow as pa

    while True:
        with _reading(name, "Arrow stream"):
            reader = pa.ipc.open_stream(pa.PythonFile(stream, mode="r"))
            conform(reader.schema.empty_table(), name)
        while True:
            with _reading(name, "Arrow stream"):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                batch.validate(full=True)  # hostile offsets would crash the process later
                table = conform(pa.Table.from_batches([batch]), name)
            yield table
        if not (head := stream.read(4)):
            return
        stream = _Prefixed(head, stream)


def _read_arrow_file(data: bytes, name: str) -> Iterator[pa.Table]:
    import pyarrow as pa

    with _reading(name, "Arrow file"):
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        table.validate(full=True)
        table = conform(table, name)
    yield table


def _read_parquet(data: bytes, name: str, columns: Collection[str] | None) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _reading(name, "Parquet file"):
        file = pq.ParquetFile(pa.BufferReader(data))
        wanted = [name for name in NAMES if columns is None or name in columns]
        known = [column for column in wanted if column in file.schema_arrow.names]
        table = file.read(columns=known)
        table.validate(full=True)
        table = conform(table, name, wanted)
    yield table


def _read_csv(data: bytes, name: str) -> Iterator[pa.Table]:
    import pyarrow as pa
    from pyarrow import csv

    types = {c.name: pa.string() if c.type is Type.NAME else arrow_schema().field(c.name).type
             for c in COLUMNS}  # fmt: skip
    if not data.endswith(b"\n"):
        raise DataError(f"{name}: CSV cut off: its last line has no end")
    with _reading(name, "CSV"):
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


def _read_jsonl(stream: Readable, name: str) -> Iterator[pa.Table]:
    import pyarrow as pa

    columns = {column.name: column for column in COLUMNS}
    rows: list[Row] = []
    for number, line in enumerate(read_lines(stream, name), 1):
        line = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not line:
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
            if VERSION_KEY.decode() in record:
                check_version(str(record[VERSION_KEY.decode()]).encode(), name)
            rows.append(
                {
                    key: _from_json(columns[key].type, value)
                    for key, value in record.items()
                    if key in columns and value is not None
                }
            )
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"{name}: line {number}: {first_line(error)}") from error
        if lacking := [column for column in REQUIRED if column not in rows[-1]]:
            raise DataError(f"{name}: line {number}: no {', '.join(lacking)}")
    with _reading(name, "JSON Lines"):
        table = conform(pa.Table.from_pylist(rows, schema=arrow_schema()), name)
    yield table


def _from_json(type_: Type, value: Any) -> Any:
    if type_ is Type.TIME:
        return parse_time(value)
    if type_ is Type.NAME:
        if not isinstance(value, str):
            raise TypeError(f"not a string: {value!r}")
        return value
    if type_ is Type.FLOAT:
        return from_json_number(value)
    if isinstance(value, bool):
        raise TypeError(f"not a number: {value!r}")
    if not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError(f"not an integer of 64 bits: {str(value)[:30]}")
    return value
