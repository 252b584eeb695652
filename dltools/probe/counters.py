"""Reads the counters and limits of a host, its containers and its GPUs, and makes rows of them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from dltools.engine import host
from dltools.engine.cgroup_files import Usage
from dltools.engine.cpu_demand import threads_wait
from dltools.engine.interface import Engine
from dltools.engine.left_alone_records import LeftAlone, read_left_alone
from dltools.engine.turn_notes import TurnNote, read_notes
from dltools.errors import DltoolsError
from dltools.labels import PROTECT
from dltools.observations.roles import NO_RULES, Rules
from dltools.observations.table import Row
from dltools.probe.container_watch import SEARCH_PART, Searchable, search_due
from dltools.probe.gpu.gpu_rows import Gpus, owners
from dltools.probe.inventory import Inventory, Watched
from dltools.probe.rows import OwnerColumns, add_job_columns, container_row, user_columns
from dltools.threads import in_threads

_BY_API = "counters are the engine's: no pressure, no OpenMP"
ELSEWHERE = "the engine's host is not this machine"
_UNREADABLE = "OpenMP: this user may not read its processes"


class Counters:
    """Reads the counters of one engine's host."""

    def __init__(
        self,
        engine: Engine,
        state_directories: Sequence[Path] = (),
        roles: Rules = NO_RULES,
        user_from: str = "",
    ) -> None:
        """Read nothing yet.

        `state_directories`: where dl-apply notes which containers take turns, and the original
        settings of those that it has changed. `roles`: the user's rules for roles. `user_from`: as
        for `user_columns`.
        """
        self._engine = engine
        self._user_from = user_from
        self._roles = roles
        self._state_directories = state_directories
        self._gpus = Gpus()
        self._owners = OwnerColumns(state_directories, engine)
        self._turns: Mapping[str, TurnNote] = {}
        self._left_alone: Mapping[str, LeftAlone] = {}
        self._threads_wait = False

    def read(self, inventory: Inventory) -> list[Row]:
        """Return the rows of the host (the first), of the containers and of the GPUs, now."""
        begun = time.perf_counter()
        common = {"time": datetime.now(UTC), "host": self._engine.host}
        elsewhere = self._is_elsewhere(inventory)
        self._gpus.owners_of = partial(owners, places=_places(inventory.running.values()))
        gpus = [] if elsewhere else self._gpus.sample(time.monotonic())
        self._turns = read_notes(self._state_directories, self._engine.id)
        self._left_alone = read_left_alone(self._state_directories, self._engine)
        self._owners.begin(inventory.running)
        host_row = self._row_of_host_elsewhere() if elsewhere else self._host_row(inventory)
        self._threads_wait = not elsewhere and threads_wait(self._engine.cpus)
        by_name = sorted(inventory.running.values(), key=lambda watched: watched.container.name)
        used = self._usage_elsewhere([watched for watched in by_name if watched.cgroup is None])
        on_device = {row.get("container_id"): row["kind"].upper() for row in gpus}
        watched_rows = [
            (watched, self._container_row(watched, host_row, used.get(watched.container.id)))
            for watched in by_name
        ]
        budget_s = SEARCH_PART * (time.perf_counter() - begun)
        _search_processes(watched_rows, budget_s if inventory.is_followed else math.inf)
        for one, row in watched_rows:
            row.update(self._columns_of_processes(one, row, on_device.get(one.container.id, "")))
        add_job_columns(watched_rows)
        if any(_has_vanished(watched, row) for watched, row in watched_rows):
            inventory.expire()
        usable = None if elsewhere else host.usable_cpu_list(inventory.shared_cgroups)
        self._owners.add(watched_rows, host_row, usable)
        host_row["cannot"] = "+".join(self._engine.capabilities.missing()) or None
        rows = [host_row, *(row for _, row in watched_rows), *_with_names(gpus, inventory.running)]
        return [common | row for row in rows]

    def left_paused(self, running: Mapping[str, Watched]) -> list[str]:
        """Return the names of the containers that a dl-apply had paused and left so when it ended,
        at the last reading."""
        return [
            watched.container.name
            for id_, note in sorted(self._turns.items())
            if (watched := running.get(id_))
            and watched.container.state == "paused"
            and not note.run.is_alive
            and note.paused_at is not None
        ]

    def _is_elsewhere(self, inventory: Inventory) -> bool:
        """Tell whether the engine's host is another machine than this one."""
        if not inventory.running:
            return not self._engine.is_local
        return not any(watched.cgroup for watched in inventory.running.values())

    def _host_row(self, inventory: Inventory) -> Row:
        return {
            "kind": "node",
            "gpu_count": self._gpus.count,
            "gap": self._gpus.gap,
            **host.measure(inventory.shared_cgroups),
        }

    def _row_of_host_elsewhere(self) -> Row:
        return {
            "kind": "node",
            "cpu_count": float(self._engine.cpus),
            "memory_total_bytes": self._engine.memory,
            "gap": ELSEWHERE,
        }

    def _usage_elsewhere(self, watched: Sequence[Watched]) -> dict[str, Usage | None]:
        """Return the use, as the engine reports it, of containers whose cgroups are not here, by
        id."""

        def ask(one: Watched) -> tuple[str, Usage | None]:
            try:
                return one.container.id, self._engine.usage(one.container.id)
            except DltoolsError:
                return one.container.id, None

        return dict(in_threads(ask, watched))

    def _container_row(self, watched: Watched, host_row: Row, used: Usage | None) -> Row:
        container, gaps = watched.container, watched.gaps
        row = container_row(container, watched.cgroup, gaps, host_row, used)
        row |= user_columns(container, self._user_from)
        if (record := self._left_alone.get(container.id)) and record.holds_for(container):
            row["labels"] = json.dumps(
                {**container.dltools_labels, PROTECT: "true"}, sort_keys=True
            )
        row["cannot"] = "+".join(self._engine.capabilities.missing(container)) or None
        if used is not None:
            row["gap"] = "; ".join(filter(None, (gaps, _BY_API)))
        turn = self._turns.get(watched.container.id)
        if turn is not None and turn.run.is_alive:
            row["turn_seconds"] = turn.seconds
            row["turn_queue"] = turn.queue or None
        return row | _demand_columns(watched, row, may_starve=self._threads_wait)

    def _columns_of_processes(self, watched: Watched, row: Row, device: str) -> Row:
        """Return the columns about the container's role, OpenMP runtime and OpenMP settings; a gap
        if it has several threads and its processes cannot be read."""
        processes = watched.processes.found if watched.cgroup is not None else None
        columns: Row = {}
        if processes is not None:
            columns["openmp_runtime"] = processes.openmp.runtime
            columns["openmp_settings"] = processes.openmp.settings
            columns["thread_pools"] = "+".join(processes.thread_pools) or None
            if not processes.is_readable and (row["thread_count"] or 0) > 1:
                columns["gap"] = "; ".join(filter(None, (row["gap"], _UNREADABLE)))
        judged = watched.role.look(watched.container, self._roles, processes, device)
        return columns | {"role": str(judged.role), "role_reason": judged.reason}


def _places(running: Iterable[Watched]) -> dict[str, str]:
    """Return by cgroup path the ids of the containers whose paths do not contain their ids."""
    containers = (watched.container for watched in running if watched.container.cgroup_path)
    return {container.cgroup_path: container.id for container in containers}


def _search_processes(rows: Sequence[tuple[Watched, Row]], budget_s: float) -> None:
    """Search the processes of the containers on this machine that are due, within a time budget."""
    search_due(
        [
            Searchable(
                watched.processes,
                watched.cgroup,
                row["thread_count"],
                watched.role.is_known,
                watched.container.network.is_shared,
            )
            for watched, row in rows
            if watched.cgroup is not None
        ],
        budget_s,
    )


def _demand_columns(watched: Watched, row: Row, *, may_starve: bool) -> Row:
    """Return the CPUs that a container wants, and the cgroup in which its weight counts. The demand
    of a paused container is unknown."""
    if watched.cgroup is None:
        return {}
    columns: Row = {"cgroup_parent": watched.cgroup_parent}
    if watched.container.state != "paused":
        columns["demand_cores"] = watched.demand.look(
            watched.cgroup,
            row["cpu_seconds"],
            may_be_frozen=row.get("turn_seconds") is not None,
            may_starve=may_starve,
        )
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
