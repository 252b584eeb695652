"""Observations as JSON Lines, one object for each row; nulls are left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dltools.errors import DataError
from dltools.inputs import read_lines
from dltools.notation.json_numbers import from_json_number, to_json_number
from dltools.notation.times import format_time, parse_time
from dltools.observations.conforming import check_version, conform, first_line
from dltools.observations.formats.base import EncodingWriter, Format, Reader, decoding
from dltools.observations.formats.prefixed_stream import PrefixedStream
from dltools.observations.schema import COLUMNS, REQUIRED, VERSION_KEY, Type, arrow_schema
from dltools.observations.table import Row

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {column.name: column.type for column in COLUMNS}
_VERSION_FIELD = VERSION_KEY.decode()


def _encode(table: pa.Table) -> bytes:
    return b"".join(map(_line, table.to_pylist()))


def _line(row: Row) -> bytes:
    record = {name: _to_json(value) for name, value in row.items() if value is not None}
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    return to_json_number(value) if isinstance(value, float) else value


def _begins(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def _tables(stream: PrefixedStream, name: str, _: Collection[str] | None) -> Iterator[pa.Table]:
    import pyarrow as pa

    rows: list[Row] = []
    for number, line in enumerate(read_lines(stream, name), 1):
        line = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not line:
            continue
        try:
            rows.append(_row(line, name))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"{name}: line {number}: {first_line(error)}") from error
        if lacking := [column for column in REQUIRED if column not in rows[-1]]:
            raise DataError(f"{name}: line {number}: no {', '.join(lacking)}")
    with decoding(name, "JSON Lines"):
        table = conform(pa.Table.from_pylist(rows, schema=arrow_schema()), name)
    yield table


def _row(line: bytes, name: str) -> Row:
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    if _VERSION_FIELD in record:
        check_version(str(record[_VERSION_FIELD]).encode(), name)
    return {
        key: _from_json(_TYPES[key], value)
        for key, value in record.items()
        if key in _TYPES and value is not None
    }


def _from_json(type_: Type, value: Any) -> Any:
    if type_ is Type.TIME:
        return parse_time(value)
    if type_ is Type.FLOAT:
        return from_json_number(value)
    if type_ is Type.NAME:
        if not isinstance(value, str):
            raise TypeError(f"not a string: {value!r}")
        return value
    if isinstance(value, bool):
        raise TypeError(f"not a number: {value!r}")
    if not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError(f"not an integer of 64 bits: {str(value)[:30]}")
    return value


FORMAT = Format(
    "jsonl",
    "JSON Lines",
    (".jsonl",),
    lambda out: EncodingWriter(out, _encode),
    (Reader(_begins, _tables),),
)
