"""Columns of a table as plain lists, from their buffers: `to_pylist` takes ten times as long."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NONE = -(2**63)


def buffer_values(array: Any, code: str) -> list[Any]:
    """Return an array without nulls, of this struct code."""
    if len(array) == 0:
        return []
    whole: Any = memoryview(array.buffers()[1])
    found: list[Any] = whole.cast(code)[array.offset : array.offset + len(array)].tolist()
    return found


def integers(table: pa.Table, name: str) -> list[int]:
    """Return a column of whole numbers, or times in microseconds, without nulls."""
    import pyarrow as pa

    return buffer_values(table.column(name).cast(pa.int64()).combine_chunks(), "q")


def optional_integers(table: pa.Table, name: str) -> list[int | None]:
    """Return a column of whole numbers, or times in microseconds, with None for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name).cast(pa.int64()).combine_chunks()
    if column.null_count == len(column):
        return [None] * len(column)
    if column.null_count == 0:
        return buffer_values(column, "q")
    filled: list[int] = buffer_values(pc.fill_null(column, _NONE), "q")
    return [None if value == _NONE else value for value in filled]


def reals(table: pa.Table, name: str) -> list[float]:
    """Return a column with NaN for what is null or not finite."""
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    if column.null_count == len(column):
        return [math.nan] * len(column)
    finite = pc.fill_null(pc.is_finite(column), False)
    return buffer_values(pc.if_else(finite, pc.fill_null(column, math.nan), math.nan), "d")


def texts(table: pa.Table, name: str) -> list[Any]:
    """Return a dictionary-encoded column of texts, with None for null."""
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    if column.null_count == len(column):
        return [None] * len(column)
    words = column.dictionary.to_pylist()
    codes = column.indices
    if codes.null_count:
        codes = pc.fill_null(codes, len(words))
        words.append(None)
    return [words[code] for code in buffer_values(codes, "i")]
