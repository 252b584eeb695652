"""The tables that dl-probe prints: containers, and the metrics of their logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from dltools.cli.tables import FittedTable
from dltools.cli.words import clip, cpu_use, limits, listed_cpus, size
from dltools.observations import metric_names


def containers_table(
    rows: Iterable[Mapping[str, Any]], earlier: dict[str, dict[str, Any]]
) -> Table:
    """Return a row per container. CPU is the mean since the sample before, which `earlier` keeps
    between calls, or since the container's start where there is none."""
    table = FittedTable(
        ("CONTAINER", "left"), ("STATE", "left"), ("CPU", "right"), ("LIMIT", "right"),
        ("MEMORY", "right"), ("THREADS", "right"), ("PROGRESS", "wrap"),
    )  # fmt: skip
    newest: dict[str, dict[str, Any]] = {}
    progress: dict[str, dict[str, float]] = {}
    nodes: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["kind"] == "container":
            key = row["container_id"]
            if key in newest:
                earlier[key] = newest[key]
            newest[key] = dict(row)
        elif row["kind"] == "progress":
            progress.setdefault(row["container_id"], {})[row["metric"]] = row["value"]
        elif row["kind"] == "node":
            nodes[row["host"]] = row
    listed = listed_cpus(newest.values())
    for key, row in newest.items():
        before = earlier.get(key)
        shown = {**(before or {}).get("progress", {}), **progress.get(key, {})}
        table.add_row(
            row["container_name"],
            row["state"],
            cpu_use(row, before),
            limits(row, (nodes.get(row["host"]) or {}).get("cpu_count"), listed),
            size(row["memory_working_set_bytes"]),
            "-" if row["thread_count"] is None else str(row["thread_count"]),
            " ".join(f"{clip(name, 18)}={value:.4g}" for name, value in shown.items()) or "-",
        )
        earlier[key] = {**row, "progress": shown}
    return table


def metrics_table(rows: Iterable[Mapping[str, Any]], *, wide: bool) -> Table:
    """Return a row per container and metric, those to go by first: which family found it, its name
    as printed, how many points, the first and last value."""
    table = FittedTable(
        ("CONTAINER", "left"), ("METRIC", "name"), ("AIM", "left"), ("FAMILY", "left"),
        ("POINTS", "right"), ("FIRST", "right"), ("LAST", "right"),
        *([("AS PRINTED", "wrap")] if wide else []),
    )  # fmt: skip
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["container_name"] or "", row["metric"], row["source"] or "")
        found.setdefault(key, []).append(row)
    order = sorted(found, key=lambda key: (key[0], metric_names.evaluation_rank(key[1])))
    for name, metric, family in order:
        points = found[name, metric, family]
        table.add_row(
            name, metric, metric_names.objective(metric), family, str(len(points)),
            f"{points[0]['value']:.4g}", f"{points[-1]['value']:.4g}",
            *([points[0].get("metric_original") or metric] if wide else []),
        )  # fmt: skip
    return table
