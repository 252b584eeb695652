"""What tests of observations and plans share: hypothesis strategies, encoders and a comparison."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from dltools.observations.formats.base import Format
from dltools.observations.formats.reading import read_table
from dltools.observations.formats.registry import FORMATS
from dltools.observations.schema import COLUMNS, REQUIRED, Column, Kind, Type
from dltools.observations.table import Row, to_table
from dltools.plan.realisation.settings import SETTINGS
from dltools.plan.records import Action, Op, Plan

EPOCH = datetime(2026, 1, 31, 12, 0, 0, 250_001, tzinfo=UTC)
READABLE = tuple(format_ for format_ in FORMATS.values() if format_.readers)
"""The formats that can be read back; Prometheus text is the newest values only."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.one_of(st.sampled_from(["node-1", "job", "loss", "", " ", "NaN", '"', "é", "🐋"]), texts)
times = st.datetimes(
    min_value=datetime(1970, 1, 1),
    max_value=datetime(2200, 1, 1),
    timezones=st.just(UTC),
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


_JSON = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
_JSON_OBJECT = st.dictionaries(texts, _JSON, max_size=3)
_POSITIVE = st.floats(0, 1e12, exclude_min=True) | st.integers(1, 2**53)
_SETTING = {
    "cpus": st.none() | _POSITIVE,
    "cpu_weight": _POSITIVE,
    "cpuset": st.none() | st.sampled_from(["0", "0-3,6", "1,3"]),
    "memory": st.none() | st.integers(1, 2**53),
}
settings_ = st.fixed_dictionaries({}, optional={name: _SETTING[name] for name in SETTINGS})
"""Any settings that a plan may set or expect."""

turns = st.builds(
    lambda group, turn_s: {"group": group, "turn_s": turn_s},
    st.integers(0, 9),
    st.floats(0, 1e6, exclude_min=True),
)
"""What a rotation sets."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan that can be written."""
    ids = draw(st.lists(integers, max_size=4, unique=True))
    ops = [draw(st.sampled_from(Op)) for _ in ids]
    actions = tuple(
        Action(
            id=identifier,
            op=op,
            host=draw(names),
            container_id=draw(names),
            container_name=draw(names),
            set=draw(turns if op is Op.ROTATE else settings_),
            expect={} if op is Op.ROTATE else draw(settings_),
            reason=draw(texts),
            to=draw(names) if op is Op.MIGRATE else None,
        )
        for identifier, op in zip(ids, ops, strict=True)
    )
    return Plan(
        policy=draw(texts),
        at=draw(texts),
        params=draw(_JSON_OBJECT),
        input=draw(_JSON_OBJECT),
        next_s=draw(st.none() | st.floats(0, 1e9)),
        actions=actions,
        state=draw(_JSON_OBJECT),
        gain=draw(texts),
        classes=draw(st.dictionaries(names, st.dictionaries(names, names, max_size=2), max_size=2)),
    )


def canonical(table: pa.Table) -> list[Row]:
    """Return rows that compare equal if and only if the tables hold the same: NaN equals NaN,
    0.0 differs from -0.0, nulls are left out."""
    return [
        {
            name: repr(value) if isinstance(value, float) else value
            for name, value in row.items()
            if value is not None
        }
        for row in table.to_pylist()
    ]


def encode(format_: Format, *samples: pa.Table) -> bytes:
    """Return samples as the product's own writer writes them."""
    out = io.BytesIO()
    target = format_.writer(out)
    for sample in samples:
        target.write(sample)
    target.close()
    return out.getvalue()


def decode(data: bytes) -> pa.Table:
    """Read observations of any format."""
    return read_table(io.BytesIO(data), "input")


def as_parquet(table: pa.Table) -> bytes:
    """Return any table as Parquet, as another tool would write it."""
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def as_arrow_stream(table: pa.Table) -> bytes:
    """Return any table as an Arrow stream, as another tool would write it."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as target:
        target.write_table(table)
    return out.getvalue()


def as_arrow_file(table: pa.Table) -> bytes:
    """Return any table as an Arrow file, which dltools reads but does not write."""
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as target:
        target.write_table(table)
    return out.getvalue()


def losses(*values: float, start: datetime = EPOCH) -> pa.Table:
    """Return progress rows, a second apart."""
    return to_table(
        {
            "time": start + timedelta(seconds=second),
            "host": "node-1",
            "kind": "progress",
            "container_name": "job-é",
            "metric": "loss",
            "value": value,
            "step": 100 + second,
        }
        for second, value in enumerate(values)
    )


def narrow(table: pa.Table) -> pa.Table:
    """Return a table with its few used columns and no metadata: a file of a few hundred bytes."""
    used = [name for name in table.column_names if table.column(name).null_count < len(table)]
    plain = pa.schema([pa.field(f.name, f.type) for f in table.select(used).schema])
    return pa.table([table.column(name) for name in used], schema=plain)
