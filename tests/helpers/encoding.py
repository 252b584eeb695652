"""Observations as bytes, as dltools and other tools write and read them; and a comparison."""

import io
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from dltools.observations.formats.base import Format
from dltools.observations.formats.registry import formats, read_table
from dltools.observations.table import Row, to_table

EPOCH = datetime(2026, 1, 31, 12, 0, 0, 250_001, tzinfo=UTC)
READABLE = tuple(format_ for format_ in formats().values() if format_.readers)
"""The formats that can be read back; Prometheus text is the newest values only."""


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


def losses(*values: float, start: datetime = EPOCH) -> pa.Table:
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
