"""Counters and limits of a host, its containers and its GPUs, as rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dltools.engine import host
from dltools.engine.containers import Engine
from dltools.engine.turn_notes import TurnNote, read_notes
from dltools.observations.table import Row
from dltools.probe.gpu import Gpus
from dltools.probe.inventory import Inventory, Watched
from dltools.probe.rows import container_row

_UNREADABLE = "OpenMP: this user may not read its processes"


class Counters:
    """Reads the counters of one engine's host."""

    def __init__(self, engine: Engine, state_directories: Sequence[Path] = ()) -> None:
        """Nothing is read yet; dl-apply notes in the state directories which containers take
        turns."""
        self._engine = engine
        self._state_directories = state_directories
        self._gpus = Gpus()
        self._turns: Mapping[str, TurnNote] = {}

    def read(self, inventory: Inventory) -> list[Row]:
        """Return the rows of the host (the first), of the containers and of the GPUs, now."""
        common = {"time": datetime.now(UTC), "host": self._engine.host}
        gpus = self._gpus.sample(time.monotonic())
        self._turns = read_notes(self._state_directories, self._engine.id)
        host_row = self._host_row(inventory)
        by_name = sorted(inventory.running.values(), key=lambda watched: watched.container.name)
        rows = [host_row]
        for watched in by_name:
            row = self._container_row(watched, host_row)
            rows.append(row)
            if _has_vanished(watched, row):
                inventory.expire()
        rows += _with_names(gpus, inventory.running)
        return [common | row for row in rows]

    def left_paused(self, running: Mapping[str, Watched]) -> list[str]:
        """Return the names of containers that a dl-apply paused, and did not unpause before it
        ended, as of the last reading."""
        return [
            watched.container.name
            for id_, note in sorted(self._turns.items())
            if (watched := running.get(id_)) and watched.container.state == "paused"
            and not note.run.is_alive
        ]  # fmt: skip

    def _host_row(self, inventory: Inventory) -> Row:
        row = {
            "kind": "node",
            "gpu_count": self._gpus.count,
            "gap": self._gpus.gap,
            **host.measure(inventory.bounds),
        }
        if inventory.running and not any(w.cgroup for w in inventory.running.values()):
            row |= {
                "cpu_count": float(self._engine.cpus),
                "cpu_seconds": None,
                "memory_total_bytes": self._engine.memory,
                "memory_available_bytes": None,
                "gpu_count": None,
                "gap": "the engine's host is not this machine",
            }
        return row

    def _container_row(self, watched: Watched, host_row: Row) -> Row:
        row = container_row(watched.container, watched.cgroup, watched.gaps, host_row)
        turn = self._turns.get(watched.container.id)
        if turn is not None and turn.run.is_alive:
            row["turn_seconds"] = turn.seconds
        return row | _openmp_columns(watched, row)


def _openmp_columns(watched: Watched, row: Row) -> Row:
    """Return the OpenMP runtime and its settings; of several threads that cannot be read, a gap."""
    if watched.cgroup is None:
        return {}
    threads = row["thread_count"]
    found = watched.openmp.look(watched.cgroup, threads)
    columns: Row = {"openmp_runtime": found.runtime, "openmp_settings": found.settings}
    if not found.is_readable and (threads or 0) > 1:
        columns["gap"] = "; ".join(filter(None, (row["gap"], _UNREADABLE)))
    return columns


def _has_vanished(watched: Watched, row: Row) -> bool:
    """Tell whether a container's cgroup has vanished: it stops, or starts again."""
    return watched.cgroup is not None and row["cpu_seconds"] is None


def _with_names(gpus: Iterable[Row], running: Mapping[str, Watched]) -> Iterator[Row]:
    """Yield the rows of GPUs with the names of their containers, without rows of containers that do
    not run or that the user did not select."""
    for row in gpus:
        id_ = row.get("container_id")
        if id_ is None:
            yield row
        elif id_ in running:
            yield row | {"container_name": running[id_].container.name}
