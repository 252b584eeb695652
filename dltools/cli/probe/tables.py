"""The tables that dl-probe prints: containers, and for --list-metrics the metrics found."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rich.console import Group
from rich.text import Text

from dltools.cli.destinations import make_console
from dltools.cli.fitted_table import FittedTable
from dltools.cli.values_in_words import clip, cpu_use, limits, listed_cpus, named, role, size
from dltools.labels import METRIC, parse_labels
from dltools.observations import judging_metric, metric_names
from dltools.observations.device_rows import use_in
from dltools.observations.judging_metric import Seen, Values
from dltools.observations.newest_rows import Observed, ObservedHosts
from dltools.text import printable

Row = Mapping[str, Any]
Dropped = Mapping[str, Mapping[str, int]]
"""Points that were taken for no series: their number by metric, by container."""

_MOST_NAMED = 8
_MOST_METRICS = 4
_UNBOUNDED = 10_000
"""Columns of a table that is printed into a file."""
_WIDE = 120
"""Columns from which on the table of containers says everything."""
_LONGEST_HOST = 32
"""Columns of a host's name at most."""


def live_view(hosts: ObservedHosts, width: int, height: int) -> Group:
    """Return a line on each host, the containers that a screen of this size has room for, and how
    many it has no room for."""
    above = [_host_line(node) for _, node in sorted(hosts.nodes.items())]
    room = max(1, height - len(above) - 4)
    count = len(hosts.containers)
    below = [f"and {count - room} more"] if count > room else []
    if not count:
        below = ["no containers are running, or the filters match none"]
    return Group(*above, containers_table(hosts, width, room), *below)


def _host_line(node: Observed) -> Text:
    """Return what is used of a host, as far as it is known."""
    row = node.row
    words = [f"{clip(row['host'], _LONGEST_HOST)}  {row['time']:%H:%M:%S}Z"]
    if row["cpu_count"]:
        used = cpu_use(row, node.before) if node.before else "-"
        words.append(f"CPU {used} of {row['cpu_count']:g}")
    if row["memory_total_bytes"] and row["memory_available_bytes"] is not None:
        taken = row["memory_total_bytes"] - row["memory_available_bytes"]
        words.append(f"memory {size(taken)} of {size(row['memory_total_bytes'])}")
    if row["gap"] and len(words) == 1:
        words.append(printable(row["gap"]))
    return Text("  ".join(words), style="bold", no_wrap=True, overflow="ellipsis")


def containers_table(hosts: ObservedHosts, width: int, most: int | None = None) -> FittedTable:
    """Return a row per container, at `most` so many, with its host where there are several. On a
    screen of `width` that is narrow, it leaves out what the name, the limits and the role say too.

    CPU is the mean since the sample before, else since the container's start.
    """
    shown = hosts.containers[:most]
    is_wide = width >= _WIDE
    has_users = any(container.row.get("user") for container in shown)
    hosts_and_names = (len(hosts.nodes) > 1 and "HOST", "CONTAINER", has_users and "USER")
    kinds = sorted({row["kind"] for container in shown for row in container.devices})
    on_devices = (f"{kind.upper()}:right" for kind in kinds)
    numbers = ("CPU:right", "LIMIT:right", "MEMORY:right", *on_devices)
    more = (is_wide and "THREADS:right", "PROGRESS:words", "ROLE:note" if is_wide else "ROLE")
    table = FittedTable(*hosts_and_names, is_wide and "STATE", *numbers, *more)
    listed = listed_cpus(container.row for container in hosts.containers)
    for observed, row in ((container, container.row) for container in shown):
        table.add_row(
            row["host"],
            row["container_name"] if is_wide else named(row),
            _whose(row),
            row["state"] or "",
            cpu_use(row, observed.before),
            limits(row, hosts.cpus_of(observed), listed),
            size(row["memory_working_set_bytes"]),
            *(_device_use(observed.devices, kind) for kind in kinds),
            "-" if row["thread_count"] is None else str(row["thread_count"]),
            _progress(observed),
            role(row) if is_wide else row.get("role") or "-",
        )
    return table


def _progress(container: Observed) -> str:
    """Return the newest values of a container's first metrics."""
    names, values = container.metrics[:_MOST_METRICS], container.values
    return " ".join(f"{clip(name, 18)}={values[name].last:.4g}" for name in names) or "-"


def _device_use(rows: Sequence[Row], kind: str) -> str:
    """Return the mean use of the devices of one kind, and their memory that is used."""
    uses = [use_in(row) for row in rows if row["kind"] == kind]
    if not uses:
        return "-"
    ratios = [use.ratio for use in uses if not math.isnan(use.ratio)]
    used = sum(use.memory or 0 for use in uses)
    return f"{f'{100 * fmean(ratios):.0f} %' if ratios else '-'} {size(used)}"


def _whose(row: Row) -> str:
    """Return whose a container is, and its priority where its owner gave it one: ann, 2."""
    priority = row.get("priority_weight")
    return ", ".join(filter(None, (row.get("user"), "" if priority is None else f"{priority:g}")))


def print_metrics(rows: Iterable[Row], dropped: Dropped | None = None) -> None:
    """Print the metrics in rows, and why each job is judged by the one that it is judged by.

    `dropped` is looked at when all rows have come.
    """
    console = make_console()
    metrics = Metrics()
    for row in rows:
        metrics.add(row)
    is_wide = console.width >= 100
    if not (console.is_terminal or os.environ.get("COLUMNS")):
        console.width = _UNBOUNDED  # a file has room for whole names
    console.print(metrics.table(wide=is_wide))
    for line in [*metrics.choices(), *_noise(dropped or {})]:
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
        name = row.get("container_name") or ""
        if row["kind"] == "container":
            if labelled := parse_labels(row.get("labels")).get(METRIC):
                self._wanted[name] = labelled
        elif row["kind"] == "progress":
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
            for metric in judging_metric.evaluation_order(seen):
                for (container, other, family), points in self._found.items():
                    if (container, other) == (name, metric):
                        table.add_row(
                            name,
                            metric,
                            metric_names.objective(metric),
                            family,
                            str(points.values.count),
                            f"{points.first:.4g}",
                            f"{points.values.last:.4g}",
                            points.original,
                        )
        return table

    def choices(self) -> list[str]:
        """Return for each job what it is judged by, and why."""
        return [
            f"{name}: {self._choice(name, seen)}" for name, seen in sorted(self._seen().items())
        ]

    def _choice(self, name: str, seen: Mapping[str, Seen]) -> str:
        """Return what a container is judged by, and why."""
        order = [metric for metric in judging_metric.evaluation_order(seen) if seen[metric].points]
        labelled = self._wanted.get(name)
        if not order:
            return "judged by nothing: no metric has been a finite number"
        if labelled in order:
            return f"judged by {labelled}: the label {METRIC} says so"
        if judging_metric.is_serving(order) and (times := judging_metric.latencies(order)):
            return f"judged by {times[0]}: it answers requests"
        best, more = order[0], f"; the label {METRIC} chooses another" if len(order) > 1 else ""
        why, aim = judging_metric.why_first(best), metric_names.objective(best)
        aims = {"min": "better when smaller", "max": "better when larger"}
        if best in judging_metric.fluctuating(order):
            more = f"; while it is flat it says nothing{more}"
        return f"judged by {best}: {why}, {aims[aim]}{more}"

    def _seen(self) -> dict[str, dict[str, Seen]]:
        """Return what there has been of the metrics of each container."""
        return {
            name: {metric: values.seen for metric, values in own.items()}
            for name, own in self._all.items()
        }


def _noise(dropped: Dropped) -> Iterator[str]:
    """Yield for each job what was dropped as noise."""
    for name, counts in dropped.items():
        if counts:
            most = sorted(counts, key=lambda metric: (-counts[metric], metric))[:_MOST_NAMED]
            listed = ", ".join(f"{metric} ({counts[metric]})" for metric in most)
            more = f" and {len(counts) - len(most)} more" if len(counts) > len(most) else ""
            yield f"{name}: dropped as noise, because no similar lines followed: {listed}{more}"
