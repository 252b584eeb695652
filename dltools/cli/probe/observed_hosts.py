"""What samples have shown of hosts, containers and metrics, for the printed and the live table."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.labels import METRIC, OBJECTIVE, parse_labels
from dltools.observations import metric_names

Row = Mapping[str, Any]

_MOST_POINTS = 120
"""Points of a metric that are kept for its sparkline."""


@dataclass(slots=True)
class ObservedContainer:
    """A container: its newest row, the row before, its labels, its GPUs, and points by metric."""

    row: Row = field(default_factory=dict)
    before: Row | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: list[Row] = field(default_factory=list)
    points: dict[str, deque[float]] = field(default_factory=dict)

    @property
    def metrics(self) -> list[str]:
        """The names of its metrics, the one that judges it first."""
        names = metric_names.evaluation_order(
            {name: metric_names.seen(values) for name, values in self.points.items()}
        )
        wanted = self.labels.get(METRIC)
        if wanted in self.points:
            names.remove(wanted)
            names.insert(0, wanted)
        return names

    def objective(self, metric: str) -> str:
        """Return "min" or "max", whichever is better for a metric."""
        return self.labels.get(OBJECTIVE) or metric_names.objective(metric)


@dataclass(slots=True)
class ObservedNode:
    """A host: its newest row, and the row before."""

    row: Row
    before: Row | None = None


class ObservedHosts:
    """One or several hosts as their samples show them, one after the other."""

    def __init__(self) -> None:
        """Nothing is known before the first sample."""
        self.nodes: dict[str, ObservedNode] = {}
        """By name."""
        self.containers: list[ObservedContainer] = []
        """The containers of the newest sample, in its order."""
        self.is_sampled = False
        self._by_id: dict[str, ObservedContainer] = {}

    def take(self, rows: Iterable[Row]) -> None:
        """Take in a sample, or an earlier one of the counters and it; containers that are in none
        are forgotten."""
        present: dict[str, ObservedContainer] = {}
        gpus: dict[str, list[Row]] = {}
        for row in rows:
            key = row["container_id"]
            if row["kind"] == "node":
                known = self.nodes.get(row["host"])
                self.nodes[row["host"]] = ObservedNode(row, known.row if known else None)
            elif row["kind"] == "container":
                self._take_container(row, present)
            elif row["kind"] == "progress":
                points = self._by_id.setdefault(key, ObservedContainer()).points
                points.setdefault(row["metric"], deque(maxlen=_MOST_POINTS)).append(row["value"])
            elif row["kind"] == "gpu" and key:
                gpus.setdefault(key, []).append(row)
        for key, container in present.items():
            container.gpus = gpus.get(key, [])
        self._by_id = present
        self.containers = list(present.values())
        self.is_sampled = True

    @property
    def by_name(self) -> list[ObservedContainer]:
        """The containers of the newest sample, by host and name."""
        return sorted(
            self.containers, key=lambda one: (str(one.row["host"]), str(one.row["container_name"]))
        )

    def cpus_of(self, container: ObservedContainer) -> float | None:
        """Return the number of CPUs of a container's host, None where it is unknown."""
        node = self.nodes.get(container.row["host"])
        return node.row["cpu_count"] if node else None

    def _take_container(self, row: Row, present: dict[str, ObservedContainer]) -> None:
        key = row["container_id"]
        container = self._by_id.setdefault(key, ObservedContainer())
        container.before = container.row or None
        container.row = row
        container.labels = parse_labels(row["labels"])
        present[key] = container
