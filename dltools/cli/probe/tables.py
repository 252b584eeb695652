"""The table of containers that dl-probe prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from dltools.cli.tables import FittedTable
from dltools.cli.words import clip, cpu_use, limits, listed_cpus, size

Row = Mapping[str, Any]


@dataclass(slots=True)
class _Sample:
    """The newest rows of containers and hosts, and the newest values of metrics."""

    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    hosts: dict[str, Row] = field(default_factory=dict)


def containers_table(rows: Iterable[Row], earlier: dict[str, dict[str, Any]]) -> Table:
    """Return a row per container, with its host where there are several.

    CPU is the mean since the sample before, which `earlier` keeps between calls, or since the
    container's start where there is none.
    """
    sample = _sample(rows, earlier)
    several = len(sample.hosts) > 1
    table = FittedTable(
        *([("HOST", "left")] if several else []),
        ("CONTAINER", "left"),
        ("STATE", "left"),
        ("CPU", "right"),
        ("LIMIT", "right"),
        ("MEMORY", "right"),
        ("THREADS", "right"),
        ("PROGRESS", "wrap"),
        ("ROLE", "wrap"),
    )
    listed = listed_cpus(sample.containers.values())
    for key, row in sample.containers.items():
        before = earlier.get(key)
        values = {**(before or {}).get("progress", {}), **sample.values.get(key, {})}
        table.add_row(
            *([row["host"]] if several else []),
            row["container_name"],
            row["state"],
            cpu_use(row, before),
            limits(row, sample.hosts.get(row["host"], {}).get("cpu_count"), listed),
            size(row["memory_working_set_bytes"]),
            "-" if row["thread_count"] is None else str(row["thread_count"]),
            " ".join(f"{clip(name, 18)}={value:.4g}" for name, value in values.items()) or "-",
            _role(row),
        )
        earlier[key] = {**row, "progress": values}
    return table


def _role(row: Row) -> str:
    """Return what a container is, and what shows it: server: publishes port 5432."""
    return ": ".join(filter(None, (row.get("role"), row.get("role_reason")))) or "-"


def _sample(rows: Iterable[Row], earlier: dict[str, dict[str, Any]]) -> _Sample:
    """Return the newest rows; the row before a container's newest one goes to `earlier`."""
    sample = _Sample()
    for row in rows:
        if row["kind"] == "container":
            key = row["container_id"]
            if key in sample.containers:
                earlier[key] = sample.containers[key]
            sample.containers[key] = dict(row)
        elif row["kind"] == "progress":
            sample.values.setdefault(row["container_id"], {})[row["metric"]] = row["value"]
        elif row["kind"] == "node":
            sample.hosts[row["host"]] = row
    return sample
