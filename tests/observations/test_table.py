"""Rows and tables in the one schema."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from helpers.encoding import canonical
from helpers.examples import examples
from helpers.strategies import rows, tables
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.conforming import conform
from dltools.observations.schema import Kind, arrow_schema
from dltools.observations.table import concat, is_one_of, sort, to_table


@examples(30)
@given(unsorted=st.lists(rows(), max_size=6))
def test_a_table_of_rows_is_sorted_and_stable(unsorted: list[dict]) -> None:
    table = to_table(unsorted)
    ordered = sorted(unsorted, key=lambda row: row["time"])
    assert [row["time"] for row in canonical(table)] == [row["time"] for row in ordered]
    assert table.column("host").to_pylist() == [row["host"] for row in ordered]


@examples(20)
@given(table=tables())
def test_a_table_in_the_schema_conforms_to_itself(table: pa.Table) -> None:
    same = conform(table, "input")
    assert same.schema.equals(table.schema, check_metadata=True)
    assert canonical(same) == canonical(table)


@examples(20)
@given(table=tables(max_rows=8), words=st.sets(st.sampled_from([*Kind, "other"])))
def test_words_of_a_column_are_found_in_every_chunk(table: pa.Table, words: set[str]) -> None:
    joined = pa.concat_tables([table, table.slice(1)])
    found = is_one_of(joined.column("kind"), words).to_pylist()
    assert found == [kind in words for kind in joined.column("kind").to_pylist()]


@examples(20)
@given(parts=st.lists(tables(max_rows=3), max_size=3))
def test_joined_tables_are_sorted_and_stable(parts: list[pa.Table]) -> None:
    joined = concat(parts)
    assert joined.schema.equals(arrow_schema(), check_metadata=True)
    every = [row for part in parts for row in canonical(part)]
    assert canonical(joined) == sorted(every, key=lambda row: row["time"])


def test_a_sorted_table_is_not_copied() -> None:
    table = to_table([{"time": datetime(2026, 1, n, tzinfo=UTC), "host": "h", "kind": "node"}
                      for n in (1, 2, 2)])  # fmt: skip
    assert sort(table) is table
