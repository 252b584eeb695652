"""The tables that dl-probe prints: containers, and the metrics of their logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from dltools.cli.tables import FittedTable
from dltools.cli.words import clip, cpu_use, limits, listed_cpus, size
from dltools.observations import metric_names

Row = Mapping[str, Any]


@dataclass(slots=True)
class _Sample:
    """The newest rows of containers and hosts, and the newest values of metrics."""

    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    hosts: dict[str, Row] = field(default_factory=dict)


def containers_table(rows: Iterable[Row], earlier: dict[str, dict[str, Any]]) -> Table:
    """Return a row per container. CPU is the mean since the sample before, which `earlier` keeps
    between calls, or since the container's start where there is none."""
    table = FittedTable(
        ("CONTAINER", "left"), ("STATE", "left"), ("CPU", "right"), ("LIMIT", "right"),
        ("MEMORY", "right"), ("THREADS", "right"), ("PROGRESS", "wrap"),
    )  # fmt: skip
    sample = _sample(rows, earlier)
    listed = listed_cpus(sample.containers.values())
    for key, row in sample.containers.items():
        before = earlier.get(key)
        values = {**(before or {}).get("progress", {}), **sample.values.get(key, {})}
        table.add_row(
            row["container_name"],
            row["state"],
            cpu_use(row, before),
            limits(row, sample.hosts.get(row["host"], {}).get("cpu_count"), listed),
            size(row["memory_working_set_bytes"]),
            "-" if row["thread_count"] is None else str(row["thread_count"]),
            " ".join(f"{clip(name, 18)}={value:.4g}" for name, value in values.items()) or "-",
        )
        earlier[key] = {**row, "progress": values}
    return table


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


@dataclass(slots=True)
class _Metric:
    """The first and last value of a metric, its name as printed, and the number of points."""

    first: float
    original: str
    last: float = 0.0
    count: int = 0


def metrics_table(rows: Iterable[Row], *, wide: bool) -> Table:
    """Return a row per container and metric, the metrics that judge a job first: the log family
    that found it, the number of points, the first and last value, and its name as printed."""
    table = FittedTable(
        ("CONTAINER", "left"), ("METRIC", "name"), ("AIM", "left"), ("FAMILY", "left"),
        ("POINTS", "right"), ("FIRST", "right"), ("LAST", "right"),
        *([("AS PRINTED", "wrap")] if wide else []),
    )  # fmt: skip
    found: dict[tuple[str, str, str], _Metric] = {}
    for row in rows:
        key = (row["container_name"] or "", row["metric"], row["source"] or "")
        metric = found.get(key)
        if metric is None:
            metric = found[key] = _Metric(row["value"], row.get("metric_original") or row["metric"])
        metric.count, metric.last = metric.count + 1, row["value"]
    order = sorted(found, key=lambda key: (key[0], metric_names.evaluation_rank(key[1])))
    for key in order:
        name, metric_name, family = key
        one = found[key]
        table.add_row(
            name, metric_name, metric_names.objective(metric_name), family, str(one.count),
            f"{one.first:.4g}", f"{one.last:.4g}", *([one.original] if wide else []),
        )  # fmt: skip
    return table
