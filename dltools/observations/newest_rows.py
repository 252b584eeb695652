"""What the newest samples show of hosts, containers and metrics, for tables and for notices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dltools.labels import METRIC, parse_labels
from dltools.observations import judging_metric
from dltools.observations.device_rows import DEVICE_COLUMNS
from dltools.observations.judging_metric import Values

Row = Mapping[str, Any]


@dataclass(slots=True)
class Observed:
    """A host or a container. It does not grow with samples."""

    row: Row = field(default_factory=dict)
    """Its newest row."""

    before: Row | None = None
    """The row before that, None where there is none."""

    devices: Sequence[Row] = ()
    """The newest rows of a container's devices."""

    values: dict[str, Values] = field(default_factory=dict)
    """The values of a container's metrics, by name."""

    def take(self, row: Row) -> None:
        """Take in a row that is newer."""
        self.before, self.row = self.row or None, row

    def add_point(self, row: Row) -> None:
        """Add a progress point."""
        self.values.setdefault(row["metric"], Values()).add(row["value"])

    @property
    def metrics(self) -> list[str]:
        """The names of its metrics, the one that judges it first."""
        names = judging_metric.evaluation_order(
            {name: values.seen for name, values in self.values.items()}
        )
        metric = parse_labels(self.row["labels"]).get(METRIC)
        if metric in self.values:
            names.remove(metric)
            names.insert(0, metric)
        return names


class ObservedHosts:
    """One or several hosts as their samples show them, one after the other."""

    def __init__(self) -> None:
        """Nothing is known before the first sample."""
        self.nodes: dict[str, Observed] = {}
        """By name."""
        self.containers: list[Observed] = []
        """The containers of the newest sample, in its order."""
        self._by_id: dict[tuple[str, str], Observed] = {}
        """By host and id."""

    def take(self, rows: Iterable[Row]) -> None:
        """Take in a sample, or an earlier one of the counters and it; containers that are in none
        are forgotten."""
        present: dict[tuple[str, str], Observed] = {}
        devices: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            key = row["host"], row["container_id"]
            if row["kind"] == "node":
                self.nodes.setdefault(row["host"], Observed()).take(row)
            elif row["kind"] == "container":
                container = present[key] = self._by_id.setdefault(key, Observed())
                container.take(row)
            elif row["kind"] == "progress":
                self._by_id.setdefault(key, Observed()).add_point(row)
            elif row["kind"] in DEVICE_COLUMNS and row["container_id"]:
                devices.setdefault(key, []).append(row)
        for key, container in present.items():
            container.devices = devices.get(key, [])
        self._by_id = present
        self.containers = list(present.values())

    def cpus_of(self, container: Observed) -> float | None:
        """Return the number of CPUs of a container's host, None where it is unknown."""
        node = self.nodes.get(container.row["host"])
        return node.row["cpu_count"] if node else None
