"""Observations as Prometheus text, for node_exporter's textfile collector: the newest values."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dltools.observations.formats.base import EncodingWriter, Format
from dltools.observations.schema import COLUMNS, Column, Instrument, Kind
from dltools.observations.table import Row

_LABELS = [column.name for column in COLUMNS if column.is_label]
_NUMBERS = [column for column in COLUMNS if column.instrument is not Instrument.ATTRIBUTE]


def prometheus_name(column: Column, kind: Kind) -> str:
    """Return the Prometheus name of a column in rows of a kind, such as
    `dltools_container_cpu_seconds_total`."""
    suffix = "_total" if column.instrument is Instrument.COUNTER else ""
    name = column.name.removeprefix(f"{kind}_")
    return f"dltools_{kind}_{name}{suffix}"


def prometheus_text(rows: Iterable[Row]) -> str:
    """Return the newest value of every series as Prometheus text; events have no series."""
    families: dict[str, tuple[Column, dict[str, float]]] = {}
    for row in rows:
        if row["kind"] not in set(Kind) or row["kind"] == Kind.EVENT:
            continue
        kind, labels = Kind(row["kind"]), _labels(row)
        for column in _NUMBERS:
            value = row.get(column.name)
            if value is not None and kind in column.kinds:
                name = prometheus_name(column, kind)
                families.setdefault(name, (column, {}))[1][labels] = value
    lines = []
    for name in sorted(families):
        column, values = families[name]
        lines += [f"# HELP {name} {column.help}", f"# TYPE {name} {column.instrument}"]
        lines += [f"{name}{{{labels}}} {_number(v)}" for labels, v in sorted(values.items())]
    return "".join(line + "\n" for line in lines)


def _labels(row: Row) -> str:
    return ",".join(f'{key}="{_escape(row[key])}"' for key in _LABELS if row.get(key) is not None)


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)


FORMAT = Format(
    "prom",
    "Prometheus text",
    (".prom",),
    lambda out: EncodingWriter(out, lambda table: prometheus_text(table.to_pylist()).encode()),
    holds_one_sample=True,
)
