"""Rows and tables in the one schema, and columns as plain lists."""

import math
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from helpers.encoding import canonical
from helpers.examples import examples
from helpers.strategies import rows, tables
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.schema import COLUMNS, REQUIRED, Kind, Type, arrow_schema
from dltools.observations.table import (
    concat,
    conform,
    integers,
    is_one_of,
    optional_integers,
    reals,
    sort,
    texts,
    to_table,
)


@examples(30)
@given(unsorted=st.lists(rows(), max_size=6))
def test_a_table_of_rows_is_sorted_and_stable(unsorted) -> None:
    table = to_table(unsorted)
    ordered = sorted(unsorted, key=lambda row: row["time"])
    assert [row["time"] for row in canonical(table)] == [row["time"] for row in ordered]
    assert table.column("host").to_pylist() == [row["host"] for row in ordered]


def test_half_of_a_surrogate_pair_becomes_a_question_mark() -> None:
    row = {"time": datetime(2031, 1, 1, tzinfo=UTC), "host": "h", "kind": "progress"}
    table = to_table([{**row, "metric": "\ud800loss", "gap": "/\udcff: gone"}, row])
    assert table.column("metric").to_pylist() == ["?loss", None]
    assert table.column("gap").to_pylist() == ["/?: gone", None]


@examples(20)
@given(table=tables())
def test_a_table_in_the_schema_conforms_to_itself(table) -> None:
    same = conform(table, "input")
    assert same.schema.equals(table.schema, check_metadata=True)
    assert canonical(same) == canonical(table)


@examples(20)
@given(table=tables(max_rows=8), words=st.sets(st.sampled_from([*Kind, "other"])))
def test_words_of_a_column_are_found_in_every_chunk(table, words) -> None:
    joined = pa.concat_tables([table, table.slice(1)])
    found = is_one_of(joined.column("kind"), words).to_pylist()
    assert found == [kind in words for kind in joined.column("kind").to_pylist()]


@examples(20)
@given(parts=st.lists(tables(max_rows=3), max_size=3))
def test_joined_tables_are_sorted_and_stable(parts) -> None:
    joined = concat(parts)
    assert joined.schema.equals(arrow_schema(), check_metadata=True)
    every = [row for part in parts for row in canonical(part)]
    assert canonical(joined) == sorted(every, key=lambda row: row["time"])


def test_a_sorted_table_is_not_copied() -> None:
    table = to_table(
        [{"time": datetime(2026, 1, n, tzinfo=UTC), "host": "h", "kind": "node"} for n in (1, 2, 2)]
    )
    assert sort(table) is table


NAMES = {
    kind: [c.name for c in COLUMNS if c.type is kind and c.name not in REQUIRED] for kind in Type
}


@examples(20)
@given(table=tables(max_rows=8))
def test_every_column_is_as_arrow_converts_it(table) -> None:
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
def test_whole_numbers_are_exact_and_null_is_none(values) -> None:
    table = pa.table({"x": pa.array(values, pa.int64())})
    assert optional_integers(table, "x") == values
