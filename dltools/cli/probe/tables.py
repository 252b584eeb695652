"""The tables that dl-probe prints: containers, and for --list-metrics the metrics found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.cli.destinations import make_console
from dltools.cli.fitted_table import FittedTable
from dltools.cli.words import clip, cpu_use, limits, listed_cpus, named, role, size
from dltools.labels import METRIC, parse_labels
from dltools.observations import metric_names
from dltools.observations.metric_names import Seen, Values
from dltools.observations.newest_rows import ObservedHosts

Row = Mapping[str, Any]
Dropped = Mapping[str, Mapping[str, int]]
"""Points that were taken for no series: their number by metric, by container."""

_MOST_NAMED = 8
_MOST_METRICS = 4
_UNBOUNDED = 10_000
"""Columns of a table that is printed into a file."""
_WIDE = 120
"""Columns from which on the table of containers says everything."""


def containers_table(hosts: ObservedHosts, width: int) -> FittedTable:
    """Return a row per container, with its host where there are several. On a screen of `width`
    that is narrow, it leaves out what the name, the limits and the role say too.

    CPU is the mean since the sample before, or since the container's start where there is none.
    """
    is_wide = width >= _WIDE
    several = len(hosts.nodes) > 1
    has_users = any(one.row.get("user") for one in hosts.containers)
    names = (several and "HOST", "CONTAINER", has_users and "USER", is_wide and "STATE")
    numbers = ("CPU:right", "LIMIT:right", "MEMORY:right", is_wide and "THREADS:right")
    table = FittedTable(*names, *numbers, "PROGRESS:words", "ROLE:note" if is_wide else "ROLE")
    listed = listed_cpus(one.row for one in hosts.containers)
    for one in hosts.containers:
        row = one.row
        values = [
            f"{clip(name, 18)}={one.values[name].last:.4g}" for name in one.metrics[:_MOST_METRICS]
        ]
        table.add_row(
            row["host"],
            row["container_name"] if is_wide else named(row),
            _whose(row),
            row["state"] or "",
            cpu_use(row, one.before),
            limits(row, hosts.cpus_of(one), listed),
            size(row["memory_working_set_bytes"]),
            "-" if row["thread_count"] is None else str(row["thread_count"]),
            " ".join(values) or "-",
            role(row) if is_wide else row.get("role") or "-",
        )
    return table


def _whose(row: Row) -> str:
    """Return whose a container is, and its priority where its owner gave it one: ann, 2."""
    priority = row.get("priority_weight")
    return ", ".join(filter(None, (row.get("user"), "" if priority is None else f"{priority:g}")))


def print_metrics(rows: Iterable[Row], dropped: Dropped | None = None) -> None:
    """Print the metrics in rows, and why each job is judged by the one that it is judged by.

    `dropped` is looked at when all rows have come.
    """
    console = make_console()
    found = Metrics()
    for row in rows:
        found.add(row)
    is_wide = console.width >= 100
    if not (console.is_terminal or os.environ.get("COLUMNS")):
        console.width = _UNBOUNDED  # a file has room for whole names
    console.print(found.table(wide=is_wide))
    for line in [*found.choices(), *_noise(dropped or {})]:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


@dataclass(frozen=True, slots=True)
class _Metric:
    """Points of one metric that one family found: the first value, the name as printed, and all
    values."""

    first: float
    original: str
    values: Values


@dataclass(slots=True)
class Metrics:
    """The metrics in rows; memory does not grow with the rows."""

    _found: dict[tuple[str, str, str], _Metric] = field(default_factory=dict)
    _all: dict[str, dict[str, Values]] = field(default_factory=dict)
    _wanted: dict[str, str] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Take in a row; only those of progress and of containers count."""
        name = row["container_name"] if row["kind"] != "node" else None
        if row["kind"] == "container":
            if wanted := parse_labels(row.get("labels")).get(METRIC):
                self._wanted[name or ""] = wanted
        elif row["kind"] == "progress":
            self._add_point(name or "", row)

    def _add_point(self, name: str, row: Row) -> None:
        key, value = (name, row["metric"], row["source"] or ""), row["value"]
        if key not in self._found:
            original = row.get("metric_original") or row["metric"]
            self._found[key] = _Metric(value, original, Values())
        self._found[key].values.add(value)
        self._all.setdefault(name, {}).setdefault(row["metric"], Values()).add(value)

    def table(self, *, wide: bool) -> FittedTable:
        """Return a row per container and metric, the metrics that judge a job first: the log family
        that found it, the number of points, the first and last value, and its name as printed."""
        headers = ("CONTAINER", "METRIC:name", "AIM", "FAMILY", "POINTS:right", "FIRST:right")
        table = FittedTable(*headers, "LAST:right", wide and "AS PRINTED:name")
        for name, seen in sorted(self._seen().items()):
            for metric in metric_names.evaluation_order(seen):
                for (container, other, family), one in self._found.items():
                    if (container, other) == (name, metric):
                        table.add_row(
                            name,
                            metric,
                            metric_names.objective(metric),
                            family,
                            str(one.values.count),
                            f"{one.first:.4g}",
                            f"{one.values.last:.4g}",
                            one.original,
                        )
        return table

    def choices(self) -> list[str]:
        """Return for each job what it is judged by, and why."""
        return [
            f"{name}: {self._choice(name, seen)}" for name, seen in sorted(self._seen().items())
        ]

    def _choice(self, name: str, seen: Mapping[str, Seen]) -> str:
        """Return what a container is judged by, and why."""
        order = [metric for metric in metric_names.evaluation_order(seen) if seen[metric].points]
        wanted = self._wanted.get(name)
        if not order:
            return "judged by nothing: no metric has been a finite number"
        if wanted in order:
            return f"judged by {wanted}: the label {METRIC} says so"
        if metric_names.is_serving(order) and (times := metric_names.latencies(order)):
            return f"judged by {times[0]}: it answers requests"
        best, more = order[0], f"; the label {METRIC} chooses another" if len(order) > 1 else ""
        why, aim = metric_names.why_first(best), metric_names.objective(best)
        aims = {"min": "better when smaller", "max": "better when larger"}
        if best in metric_names.fluctuating(order):
            more = f"; while it is flat it says nothing{more}"
        return f"judged by {best}: {why}, {aims[aim]}{more}"

    def _seen(self) -> dict[str, dict[str, Seen]]:
        """Return what there has been of the metrics of each container."""
        return {
            name: {metric: values.seen for metric, values in own.items()}
            for name, own in self._all.items()
        }


def _noise(dropped: Dropped) -> list[str]:
    """Return for each job what was dropped as noise."""
    said = []
    for name, counts in dropped.items():
        if counts:
            most = sorted(counts, key=lambda metric: (-counts[metric], metric))[:_MOST_NAMED]
            listed = ", ".join(f"{metric} ({counts[metric]})" for metric in most)
            more = f" and {len(counts) - len(most)} more" if len(counts) > len(most) else ""
            said.append(
                f"{name}: dropped as noise, because no lines like theirs came again: {listed}{more}"
            )
    return said
