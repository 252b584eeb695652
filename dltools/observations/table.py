"""Rows and tables in the one schema."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dltools.errors import DataError
from dltools.notation.times import to_micros
from dltools.observations.schema import REQUIRED, VERSION, VERSION_KEY, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

_SAID = ("progress", "event")
_RUNS = 20

Row = dict[str, Any]
"""One observation: column name to value, absent columns being null. Times are aware datetimes."""


_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds since the epoch at the ends of the years 1 and 9999."""


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table in the one schema, sorted by time."""
    import pyarrow as pa

    ordered = sorted(rows, key=itemgetter("time"))
    # What was said has a quarter of the columns: in long runs of it the rest need no look.
    runs = [list(run) for _, run in groupby(ordered, lambda row: row["kind"] in _SAID)]
    if not 1 < len(runs) <= _RUNS:
        return _table(ordered)
    return pa.concat_tables([_table(run) for run in runs]).unify_dictionaries()


def _table(rows: list[Row]) -> pa.Table:
    import pyarrow as pa

    used = {name for names in {tuple(row) for row in rows} for name in names}
    columns = []
    for field in arrow_schema():
        if field.name not in used:
            columns.append(pa.nulls(len(rows), field.type))
        elif pa.types.is_timestamp(field.type):
            columns.append(_times([row.get(field.name) for row in rows], field.type))
        else:
            columns.append(pa.array([row.get(field.name) for row in rows], field.type))
    return pa.table(columns, schema=arrow_schema())


def _times(moments: list[datetime | None], type_: pa.DataType) -> pa.Array:
    """Return times as Arrow has them; its own way takes 17 times as long (measured)."""
    import pyarrow as pa

    known = [None if moment is None else to_micros(moment) for moment in moments]
    return pa.array(known, type_)


def conform(table: pa.Table, name: str, wanted: Collection[str] | None = None) -> pa.Table:
    """Return a table in the one schema: known columns cast, missing ones null, others dropped.

    With `wanted` of these columns alone, in the schema's order.

    Raises `DataError` for a foreign table, another major version, or values that do not fit.
    """
    import pyarrow as pa

    check_version((table.schema.metadata or {}).get(VERSION_KEY), name)
    missing = [column for column in REQUIRED if column not in table.column_names]
    if missing:
        raise DataError(f"{name}: not dltools observations: no column {', '.join(missing)}")
    names = table.column_names
    if twice := sorted({column for column in names if names.count(column) > 1}):
        raise DataError(f"{name}: not dltools observations: column {twice[0]} comes twice")
    arrays = []
    schema = arrow_schema()
    if wanted is not None:
        fields = [field for field in schema if field.name in wanted]
        schema = pa.schema(fields, metadata=schema.metadata)
    for field in schema:
        if field.name not in table.column_names:
            arrays.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        try:
            arrays.append(column if column.type == field.type else _cast(column, field.type))
        except (pa.ArrowException, TypeError) as error:
            raise DataError(f"{name}: column {field.name}: {first_line(error)}") from error
        if not field.nullable and _has_nulls(column):
            raise DataError(f"{name}: column {field.name} has empty values")
    found = sort(pa.table(arrays, schema=schema))
    _check_times(found, name)
    return found


def _has_nulls(column: pa.ChunkedArray) -> bool:
    """Tell whether a value is null, in a dictionary too."""
    import pyarrow as pa

    if column.null_count or not pa.types.is_dictionary(column.type):
        return bool(column.null_count)
    return None in column.unique().to_pylist()


def is_one_of(column: pa.ChunkedArray, words: Collection[str]) -> pa.ChunkedArray:
    """Return which values of a dictionary-encoded column are among words, by its codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    masks = []
    for chunk in column.chunks:
        known = chunk.dictionary.to_pylist()
        codes = pa.array([code for code, word in enumerate(known) if word in words], pa.int32())
        masks.append(pc.is_in(chunk.indices, codes))
    return pa.chunked_array(masks, pa.bool_())


def _check_times(table: pa.Table, name: str) -> None:
    """Raise `DataError` for a time that no calendar has."""
    import pyarrow.compute as pc

    for column in {"time", "started_at"} & set(table.column_names):
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


def sort(table: pa.Table) -> pa.Table:
    """Return the rows in order of time; rows of one time keep their order."""
    import pyarrow.compute as pc

    times = table.column("time").cast("int64").combine_chunks()
    if len(times) < 2 or pc.all(pc.less_equal(times[:-1], times[1:])).as_py():
        return table
    order = pc.array_sort_indices(times)  # stable
    return table.take(order)


def check_version(found: bytes | None, name: str) -> None:
    """Raise `DataError`, naming both versions, for a major version that is not ours."""
    if found is None:  # another tool rewrote the file: its columns decide
        return
    if found.split(b".")[0] != VERSION.encode().split(b".")[0]:
        theirs = found.decode(errors="replace")
        raise DataError(f"{name}: schema version {theirs}; this dltools reads version {VERSION}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, cut to a readable length."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
