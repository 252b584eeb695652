"""Columns of a table as plain lists, made from their buffers, which is ten times as fast as
`to_pylist`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NONE = -(2**63)
"""Stands for null while a column is a buffer."""


def buffer_values(array: Any, code: str) -> list[Any]:
    """Return the values of an array without nulls; `code` is their type as `struct` has it."""
    if len(array) == 0:
        return []
    whole: Any = memoryview(array.buffers()[1])
    found: list[Any] = whole.cast(code)[array.offset : array.offset + len(array)].tolist()
    return found


def integers(table: pa.Table, name: str) -> list[int]:
    """Return a column without nulls of whole numbers, or of times, in microseconds."""
    import pyarrow as pa

    return buffer_values(table.column(name).cast(pa.int64()).combine_chunks(), "q")


def optional_integers(table: pa.Table, name: str) -> list[int | None]:
    """Return a column of whole numbers, or of times, in microseconds; None for null."""
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
    """Return a column of numbers; NaN for null and for what is not finite."""
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    if column.null_count == len(column):
        return [math.nan] * len(column)
    finite = pc.fill_null(pc.is_finite(column), False)
    return buffer_values(pc.if_else(finite, pc.fill_null(column, math.nan), math.nan), "d")


def texts(table: pa.Table, name: str) -> list[Any]:
    """Return a dictionary-encoded column of texts; None for null."""
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
