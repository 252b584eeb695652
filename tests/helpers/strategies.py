"""Hypothesis strategies for rows and tables of observations."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from dltools.observations.schema import COLUMNS, REQUIRED, Column, Kind, Type
from dltools.observations.table import Row, to_table

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.one_of(st.sampled_from(["node-1", "job", "loss", "", " ", "NaN", '"', "é", "🐋"]), texts)
times = st.datetimes(
    min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)
)
integers = st.integers(-(2**63), 2**63 - 1)
reals = st.floats(width=64)

_VALUES = {Type.TIME: times, Type.NAME: names, Type.INT: integers, Type.FLOAT: reals}


def cells(column: Column) -> st.SearchStrategy[Any]:
    """Any value that a column may hold; null only where the schema allows it."""
    if column.name == "kind":
        return st.sampled_from([kind.value for kind in Kind])
    values = _VALUES[column.type]
    return values if column.name in REQUIRED else st.none() | values


@st.composite
def rows(draw: st.DrawFn, kinds: Iterable[Kind] = tuple(Kind)) -> Row:
    """Any row that the schema allows: of any kind, with any of the kind's columns filled."""
    kind = draw(st.sampled_from(tuple(kinds)))
    row = {
        column.name: draw(cells(column))
        for column in COLUMNS
        if column.name != "kind" and kind in column.kinds
    }
    row = {name: value for name, value in row.items() if value is not None}
    return {**row, "kind": kind.value}


def tables(min_rows: int = 0, max_rows: int = 6) -> st.SearchStrategy[pa.Table]:
    """Any table that the schema allows, sorted by time."""
    return st.lists(rows(), min_size=min_rows, max_size=max_rows).map(to_table)
