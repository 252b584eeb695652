"""Observations as Prometheus text, for node_exporter's textfile collector."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from dltools.observations.schema import COLUMNS, Instrument, Kind, prometheus_name

_PROM_LABELS = ("host", "container_id", "container_name", "gpu_uuid", "metric")


def prometheus_text(rows: Iterable[dict[str, Any]]) -> str:
    """Return the newest value of every series as Prometheus text; events have no series."""
    families: dict[str, tuple[str, str, dict[str, float]]] = {}
    numbers = [c for c in COLUMNS if c.instrument is not Instrument.ATTRIBUTE]
    for row in rows:
        if row["kind"] not in set(Kind) or row["kind"] == Kind.EVENT:
            continue
        kind = Kind(row["kind"])
        labels = ",".join(
            f'{key}="{_escape(row[key])}"' for key in _PROM_LABELS if row.get(key) is not None
        )
        for column in numbers:
            value = row.get(column.name)
            if value is None or kind not in column.kinds:
                continue
            name = prometheus_name(column, kind)
            kind_of = "counter" if column.instrument is Instrument.COUNTER else "gauge"
            families.setdefault(name, (column.help, kind_of, {}))[2][labels] = value
    lines = []
    for name, (text, kind_of, series) in sorted(families.items()):
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind_of}"]
        lines += [f"{name}{{{labels}}} {_number(v)}" for labels, v in sorted(series.items())]
    return "".join(line + "\n" for line in lines)


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)
