"""Columns as plain lists hold what `to_pylist` gives, with NaN for numbers that are unknown."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from helpers.examples import examples
from helpers.strategies import tables
from hypothesis import given

from dltools.observations.column_lists import integers, optional_integers, reals, texts
from dltools.observations.schema import COLUMNS, REQUIRED, Type

NAMES = {
    kind: [c.name for c in COLUMNS if c.type is kind and c.name not in REQUIRED] for kind in Type
}


@examples(20)
@given(table=tables(max_rows=8))
def test_every_column_is_as_arrow_converts_it(table: pa.Table) -> None:
    for part in (table, table.slice(1), pa.concat_tables([table, table]).unify_dictionaries()):
        micros = part.column("time").cast(pa.int64()).to_pylist()
        assert integers(part, "time") == optional_integers(part, "time") == micros
        for name in NAMES[Type.NAME]:
            assert texts(part, name) == part.column(name).to_pylist()
        for name in NAMES[Type.FLOAT]:
            known = [
                math.nan if value is None or math.isinf(value) else value
                for value in part.column(name).to_pylist()
            ]
            assert list(map(repr, reals(part, name))) == list(map(repr, known))


@pytest.mark.parametrize("values", [[], [None], [1, None, -(2**53)], [2**63 - 1, 0]])
def test_whole_numbers_are_exact_and_null_is_none(values: list[int | None]) -> None:
    table = pa.table({"x": pa.array(values, pa.int64())})
    assert optional_integers(table, "x") == values
