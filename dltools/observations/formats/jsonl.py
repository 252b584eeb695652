"""Observations as JSON Lines, one object for each row; nulls are left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dltools.bounded_reading import read_lines
from dltools.errors import DataError, first_line
from dltools.input_kinds import begins_record, refusal
from dltools.notation.json_values import from_json_number, to_json_number
from dltools.notation.times import format_time, parse_time
from dltools.observations.formats.base import (
    EncodingWriter,
    Format,
    PrefixedStream,
    Reader,
    decoding,
)
from dltools.observations.schema import COLUMNS, REQUIRED, VERSION_KEY, Type, arrow_schema
from dltools.observations.table import Row, check_version, conform

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {column.name: column.type for column in COLUMNS}
_VERSION_FIELD = VERSION_KEY.decode()


def encode(table: pa.Table) -> bytes:
    """Return rows as lines. Columns that are null in all rows are not looked at in each."""
    names = [name for name in table.column_names if table.column(name).null_count < len(table)]
    return "".join(map(_line, table.select(names).to_pylist())).encode()


def _line(row: Row) -> str:
    record = {name: _to_json(value) for name, value in row.items() if value is not None}
    return json.dumps(record, ensure_ascii=False) + "\n"


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    return to_json_number(value) if isinstance(value, float) else value


def _tables(stream: PrefixedStream, name: str, _: Collection[str] | None) -> Iterator[pa.Table]:
    import pyarrow as pa

    rows: list[Row] = []
    for number, line in enumerate(read_lines(stream, name), 1):
        line = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not line:
            continue
        if not rows and (reason := refusal(line)):
            raise DataError(f"{name}: {reason}")
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
    lambda out: EncodingWriter(out, encode),
    (Reader(begins_record, _tables),),
)
