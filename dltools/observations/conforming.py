"""Tables of any writer made to fit the one schema, or refused."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from dltools.errors import DataError
from dltools.observations.schema import COLUMNS, REQUIRED, VERSION, VERSION_KEY, Type, arrow_schema
from dltools.observations.table import sort

if TYPE_CHECKING:
    import pyarrow as pa

_TIMES = {column.name for column in COLUMNS if column.type is Type.TIME}
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds since the epoch at the ends of the years 1 and 9999."""


def conform(table: pa.Table, name: str, wanted: Collection[str] | None = None) -> pa.Table:
    """Return a table in the one schema, sorted by time: known columns are cast, missing columns are
    null, other columns are dropped. `wanted`: the columns that it shall have, all for None.

    Raises `DataError`, with the `name` of the input, for a table without the required columns, for
    another major version, and for values that do not fit.
    """
    import pyarrow as pa

    _check_columns(table, name)
    schema = arrow_schema()
    if wanted is not None:
        fields = [field for field in schema if field.name in wanted]
        schema = pa.schema(fields, metadata=schema.metadata)
    found = sort(pa.table([_column(table, field, name) for field in schema], schema=schema))
    _check_times(found, name)
    return found


def _check_columns(table: pa.Table, name: str) -> None:
    """Raise `DataError` for another major version, and for columns that are missing or doubled."""
    check_version((table.schema.metadata or {}).get(VERSION_KEY), name)
    names = table.column_names
    if missing := [column for column in REQUIRED if column not in names]:
        raise DataError(f"{name}: not dltools observations: no column {', '.join(missing)}")
    if twice := sorted({column for column in names if names.count(column) > 1}):
        raise DataError(f"{name}: not dltools observations: column {twice[0]} comes twice")


def _column(table: pa.Table, field: pa.Field, name: str) -> pa.Array | pa.ChunkedArray:
    """Return the column of a field, cast to its type; nulls where the table has none."""
    import pyarrow as pa

    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    column = table.column(field.name)
    try:
        found = column if column.type == field.type else _cast(column, field.type)
    except (pa.ArrowException, TypeError) as error:
        raise DataError(f"{name}: column {field.name}: {first_line(error)}") from error
    if not field.nullable and _has_nulls(column):
        raise DataError(f"{name}: column {field.name} has empty values")
    return found


def _has_nulls(column: pa.ChunkedArray) -> bool:
    """Tell whether a value is null, in a dictionary too."""
    import pyarrow as pa

    if column.null_count or not pa.types.is_dictionary(column.type):
        return bool(column.null_count)
    return None in column.unique().to_pylist()


def _check_times(table: pa.Table, name: str) -> None:
    """Raise `DataError` for a time that a datetime cannot hold."""
    import pyarrow.compute as pc

    for column in _TIMES & set(table.column_names):
        bounds = pc.min_max(table.column(column).cast("int64")).as_py()
        low, high = bounds["min"], bounds["max"]
        if low is not None and (low < _FIRST_TIME or high > _LAST_TIME):
            raise DataError(f"{name}: column {column} has times outside the years 1 to 9999")


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    if pa.types.is_dictionary(target):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.cast(pa.string()).dictionary_encode().cast(target)
    return column.cast(target)


def check_version(found: bytes | None, name: str) -> None:
    """Raise `DataError`, naming both versions, for another major version."""
    if found is None:  # another tool rewrote the file: its columns decide
        return
    if found.split(b".")[0] != VERSION.encode().split(b".")[0]:
        theirs = found.decode(errors="replace")
        raise DataError(f"{name}: schema version {theirs}; this dltools reads version {VERSION}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, cut to a readable length."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
