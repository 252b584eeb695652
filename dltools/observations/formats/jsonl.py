"""Observations as JSON Lines, one object for each row; nulls are left out."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from itertools import chain, groupby, islice, repeat
from typing import TYPE_CHECKING, Any

from dltools.contents import begins_record, refusal
from dltools.errors import DataError, first_line
from dltools.inputs import read_lines
from dltools.notation.json_values import from_json_number, to_json_number
from dltools.notation.times import MICRO, format_time, from_micros, parse_time
from dltools.observations.formats.base import (
    EncodingWriter,
    Format,
    PrefixedStream,
    Reader,
    decoding,
)
from dltools.observations.schema import COLUMNS, REQUIRED, VERSION_KEY, Type, arrow_schema
from dltools.observations.table import (
    Row,
    buffer_values,
    check_version,
    conform,
    integers,
    optional_integers,
    texts,
)

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {column.name: column.type for column in COLUMNS}
_VERSION_FIELD = VERSION_KEY.decode()


def encode(table: pa.Table) -> bytes:
    """Return rows as lines, made column by column, which is ten times as fast as row by row.

    What all rows have in common is written once, and repeated.
    """
    parts: list[str | list[str]] = []
    text = "{"
    for name in table.column_names:
        for part in _members(table, name, ", " if parts else ""):
            if isinstance(part, str):
                text += part
            else:
                parts += (text, part)
                text = ""
    parts.append(text + "}\n")
    columns = [repeat(part) if isinstance(part, str) else part for part in parts]
    rows = islice(zip(*columns, strict=False), table.num_rows)
    return "".join(chain.from_iterable(rows)).encode()


def _members(table: pa.Table, name: str, comma: str) -> list[str | list[str]]:
    """Return the members `, "name": value` of a column in parts: a text that all rows have, or one
    for each row, "" for null; [] if all are null. The first column, the time, has no comma."""
    column, key = table.column(name), f"{comma}{json.dumps(name)}: "
    if column.null_count == len(column):
        return []
    if _TYPES[name] is Type.NAME:
        words = column.unique().to_pylist()
        if len(words) == 1:
            return [key + _json(words[0])]
        known = {word: "" if word is None else key + _json(word) for word in words}
        return [[known[word] for word in texts(table, name)]]
    if _TYPES[name] is Type.TIME:
        return [_times(table, name, key)]
    if _TYPES[name] is Type.INT:
        if column.null_count == 0:
            return [key, list(map(str, integers(table, name)))]
        return [["" if value is None else f"{key}{value}" for value in column.to_pylist()]]
    return _reals(column, key)


def _reals(column: pa.ChunkedArray, key: str) -> list[str | list[str]]:
    import pyarrow.compute as pc

    if column.null_count == 0 and pc.all(pc.is_finite(column)).as_py():
        values = buffer_values(column.combine_chunks(), "d")
        if len(set(values)) == 1 and values[0]:  # 0 equals -0
            return [key + repr(values[0])]
        return [key, list(map(repr, values))]
    found = column.to_pylist()
    return [["" if value is None else f"{key}{_json_real(value)}" for value in found]]


def _times(table: pa.Table, name: str, key: str) -> list[str]:
    """Return the members of a column of times; many rows in a row have the same."""
    shown, found = _Times(), []
    for time, same in groupby(optional_integers(table, name)):
        member = "" if time is None else f'{key}"{shown.text(time)}"'
        found += [member] * len(list(same))
    return found


class _Times:
    """Writes times, of which many lie in the same second."""

    def __init__(self) -> None:
        self._second: int | None = None
        self._text = ""

    def text(self, micros: int) -> str:
        second, rest = divmod(micros, MICRO)
        if second != self._second:
            self._second = second
            self._text = format_time(from_micros(second * MICRO)).removesuffix("000000Z")
        return f"{self._text}{rest:06}Z"


def _json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_real(value: float) -> str:
    return repr(value) if math.isfinite(value) else json.dumps(to_json_number(value))


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
