"""The table of observations: made from rows, made to fit the one schema, and read as plain lists.

Who writes observations makes a table of rows (`to_table`); who reads them makes any writer's table
fit the schema (`conform`). Columns become lists from their buffers, which is ten times as fast as
Arrow's `to_pylist`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dltools.errors import DataError, first_line
from dltools.notation.times import to_micros
from dltools.observations.schema import COLUMNS, REQUIRED, VERSION, VERSION_KEY, Type, arrow_schema
from dltools.text import writable

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
"""One observation: values by column name. Absent columns are null; times have a zone."""


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table in the one schema, sorted by time. Half of a surrogate pair, which
    JSON and names of files may hold, becomes ?."""
    import pyarrow as pa

    ordered = sorted(rows, key=itemgetter("time"))
    used = {name for names in {tuple(row) for row in ordered} for name in names}
    values: dict[str, list[Any]] = {name: [None] * len(ordered) for name in used}
    for number, row in enumerate(ordered):  # most rows have a quarter of the columns
        for name, value in row.items():
            values[name][number] = value
    columns = [
        _column(values[field.name], field.type)
        if field.name in used
        else pa.nulls(len(ordered), field.type)
        for field in arrow_schema()
    ]
    return pa.table(columns, schema=arrow_schema())


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Return values as an Arrow array, texts with ? for what UTF-8 cannot encode. Arrow's own
    conversion of times takes 17 times as long (measured)."""
    import pyarrow as pa

    if pa.types.is_timestamp(type_):
        values = [None if moment is None else to_micros(moment) for moment in values]
    try:
        return pa.array(values, type_)
    except UnicodeEncodeError:
        return pa.array([None if text is None else writable(text) for text in values], type_)


def is_one_of(column: pa.ChunkedArray, words: Collection[str]) -> pa.ChunkedArray:
    """Return for each value of a dictionary-encoded column whether it is one of the words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    masks = []
    for chunk in column.chunks:
        entries = chunk.dictionary.to_pylist()
        codes = pa.array([code for code, word in enumerate(entries) if word in words], pa.int32())
        masks.append(pc.is_in(chunk.indices, codes))
    return pa.chunked_array(masks, pa.bool_())


def hosts_of(table: pa.Table, kinds: Collection[str]) -> set[str]:
    """Return the hosts that have rows of some kinds."""
    rows = is_one_of(table.column("kind"), kinds)
    return set(table.column("host").filter(rows).unique().to_pylist())


def sort(table: pa.Table) -> pa.Table:
    """Return the rows in order of time; rows of one time keep their order."""
    import pyarrow.compute as pc

    times = table.column("time").cast("int64").combine_chunks()
    if len(times) < 2 or pc.all(pc.less_equal(times[:-1], times[1:])).as_py():
        return table
    order = pc.array_sort_indices(times)  # stable
    return table.take(order)


def concat(tables: Iterable[pa.Table]) -> pa.Table:
    """Return tables of the same columns as one, sorted by time; no tables are an empty table."""
    import pyarrow as pa

    parts = list(tables)
    if not parts:
        return arrow_schema().empty_table()
    return sort(pa.concat_tables(parts).unify_dictionaries())


_TIMES = {column.name for column in COLUMNS if column.type is Type.TIME}
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds since the epoch at the ends of the years 1 and 9999."""


def conform(table: pa.Table, name: str, columns: Collection[str] | None = None) -> pa.Table:
    """Return a table in the one schema, sorted by time: known columns are cast, missing columns are
    null, other columns are dropped. `columns`: the columns that it shall have, all for None.

    Raises `DataError`, with the `name` of the input, for a table without the required columns, for
    another major version, and for values that do not fit.
    """
    import pyarrow as pa

    _check_columns(table, name)
    schema = arrow_schema()
    if columns is not None:
        fields = [field for field in schema if field.name in columns]
        schema = pa.schema(fields, metadata=schema.metadata)
    fitted = sort(
        pa.table([_conforming_column(table, field, name) for field in schema], schema=schema)
    )
    _check_times(fitted, name)
    return fitted


def _check_columns(table: pa.Table, name: str) -> None:
    """Raise `DataError` for another major version, and for columns that are missing or doubled."""
    check_version((table.schema.metadata or {}).get(VERSION_KEY), name)
    names = table.column_names
    if missing := [column for column in REQUIRED if column not in names]:
        raise DataError(f"{name}: not dltools observations: no column {', '.join(missing)}")
    if twice := sorted({column for column in names if names.count(column) > 1}):
        raise DataError(f"{name}: not dltools observations: column {twice[0]} comes twice")


def _conforming_column(table: pa.Table, field: pa.Field, name: str) -> pa.Array | pa.ChunkedArray:
    """Return the column of a field, cast to its type; nulls where the table has none."""
    import pyarrow as pa

    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    column = table.column(field.name)
    try:
        fitted = column if column.type == field.type else _cast(column, field.type)
    except (pa.ArrowException, TypeError) as error:
        raise DataError(f"{name}: column {field.name}: {first_line(error)}") from error
    if not field.nullable and _has_nulls(column):
        raise DataError(f"{name}: column {field.name} has empty values")
    return fitted


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


def check_version(version: bytes | None, name: str) -> None:
    """Raise `DataError`, naming both versions, for another major version."""
    if version is None:  # another tool rewrote the file: its columns decide
        return
    if version.split(b".")[0] != VERSION.encode().split(b".")[0]:
        theirs = version.decode(errors="replace")
        raise DataError(f"{name}: schema version {theirs}; this dltools reads version {VERSION}")


_NONE = -(2**63)
"""Stands for null while a column is a buffer."""


def buffer_values(array: Any, code: str) -> list[Any]:
    """Return the values of an array without nulls; `code` is their type as `struct` has it."""
    if len(array) == 0:
        return []
    whole: Any = memoryview(array.buffers()[1])
    values: list[Any] = whole.cast(code)[array.offset : array.offset + len(array)].tolist()
    return values


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
    """Return a column of numbers; the one `math.nan` for null and for what is not finite."""
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    if column.null_count == len(column):
        return [math.nan] * len(column)
    values = buffer_values(pc.fill_null(column, math.nan), "d")
    if math.isfinite(sum(values)):
        return values
    return [value if math.isfinite(value) else math.nan for value in values]


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
