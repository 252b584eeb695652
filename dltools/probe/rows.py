"""Makes rows of containers and progress; called by `counters`, `sampler` and `saved_logs`.

A container's row has its counters and limits, its job, and the limits that its owner asked for,
which are those from before dl-apply changed it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroup_files import Usage, network_bytes
from dltools.engine.distributed import Membership, membership_at_start
from dltools.engine.gpu_access import share_at_start
from dltools.engine.interface import Container, Engine
from dltools.engine.journal import OwnersJournals
from dltools.engine.kernel_scales import asked_weight
from dltools.engine.parts import SetsLimits, part
from dltools.engine.pauses import why_no_pause
from dltools.labels import JOB, USER, priority
from dltools.notation.limits import ASKED, DEFAULTS, IN_FORCE, Limits, as_columns, from_columns
from dltools.notation.resources import parse_cpus
from dltools.observations.table import Row
from dltools.probe.progress.base import Point
from dltools.text import printable

if TYPE_CHECKING:
    from dltools.probe.inventory import Watched

_N = TypeVar("_N", int, float)


def progress_row(
    time: datetime, host: str, id_: str, name: str, point: Point, gap: str | None = None
) -> Row:
    """Return a point as an observation."""
    return {
        "time": time,
        "host": host,
        "kind": "progress",
        "gap": gap,
        "container_id": id_,
        "container_name": name,
        "metric": point.metric,
        "metric_original": point.original,
        "value": point.value,
        "step": point.step,
        "epoch": point.epoch,
        "epoch_count": point.epochs,
        "step_count": point.steps,
        "source": point.source,
    }


def container_row(
    container: Container,
    group: Cgroup | None,
    gap: str | None,
    host_row: Row,
    used: Usage | None = None,
) -> Row:
    """Return a container's counters and the limits in force. Without a cgroup they are those that
    the engine reports."""
    labels = container.dltools_labels
    row: Row = {
        "kind": "container",
        "container_id": container.id,
        "container_name": container.name,
        "image": container.image,
        "state": container.state,
        "started_at": container.started,
        "labels": json.dumps(labels, sort_keys=True) if labels else None,
        "gpu_share_at_start": share_at_start(container.program.environ) or None,
        "gap": gap,
    }
    if group is None:
        recorded: Limits = {**DEFAULTS, "memory": None, **container.recorded}
        counters = {} if used is None else _usage_columns(used, None)
        return row | counters | _limit_columns(recorded, host_row)
    network = network_bytes(container.pid, read=group.files.read)
    here = group.usage()._replace(network=network)
    limits = _limit_columns(group.limits(), host_row)
    return row | limits | _usage_columns(here, host_row["memory_total_bytes"])


def _usage_columns(used: Usage, host_memory: int | None) -> Row:
    """Return the columns of counters; `host_memory`: the bytes of the host, None if unknown."""
    memory = used.memory
    limit = _bounded(memory.limit, host_memory) if memory.is_limit_known else None
    return {
        "cpu_seconds": used.cpu.seconds,
        "cpu_throttled_seconds": used.cpu.throttled_seconds,
        **{f"{name}_pressure_seconds": value for name, value in used.pressure.items()},
        "thread_count": used.threads,
        "memory_usage_bytes": memory.used,
        "memory_working_set_bytes": memory.working_set,
        "memory_anon_bytes": memory.anon,
        "memory_file_bytes": memory.file,
        "memory_shmem_bytes": memory.shmem,
        "memory_limit_bytes": limit,
        "io_read_bytes": used.io.read,
        "io_write_bytes": used.io.written,
        "network_receive_bytes": used.network.read,
        "network_transmit_bytes": used.network.written,
    }


def _limit_columns(limits: Limits, host_row: Row) -> Row:
    """Return the columns of limits in force, none of which is beyond the whole host."""
    columns = as_columns(limits, IN_FORCE)
    for name, whole in (("cpus", "cpu_count"), ("memory", "memory_total_bytes")):
        if name in limits:
            columns[IN_FORCE[name]] = _bounded(columns[IN_FORCE[name]], host_row[whole])
    return columns


def _bounded(limit: _N | None, whole: _N | None) -> _N | None:
    """Return a limit, at most the whole of the host; None for both means unknown."""
    return min((bound for bound in (limit, whole) if bound is not None), default=None)


_LONGEST = 200
"""Characters of the name of a job, as labels say it."""


def user_columns(container: Container, user_from: str) -> Row:
    """Return a container's user and priority, from its labels. Without the label, the user comes
    from `user_from`: `container` is the user that its first process runs as, `label:KEY` is another
    label."""
    said = container.labels.get(USER, "").strip()
    if not said and user_from == CONTAINER_USER:
        said = container.program.user.partition(":")[0]
        said = "" if said in _ROOT else said
    elif not said and user_from:
        said = container.labels.get(user_from.removeprefix(LABEL_USER), "").strip()
    return {
        "user": printable(said)[:_LONGEST] or None,
        "priority_weight": priority(container.labels),
    }


CONTAINER_USER, LABEL_USER = "container", "label:"
"""Values of `user_from`; the second is followed by the key of a label."""

_ROOT = ("", "0", "root")
"""Users of processes that do not show whose a container is."""


def add_job_columns(rows: Sequence[tuple[Watched, Row]]) -> None:
    """Add the columns of jobs to the rows of a host's containers.

    The name of a job is its label; else the address where its members meet; else, for distributed
    members, the Swarm service that they are tasks of. Whoever must not be paused, as a member or by
    its label, cannot be.
    """
    members = [(watched.container, row, _membership(watched)) for watched, row in rows]
    given = Counter(_meeting(container, member) for container, _, member in members if member)
    for container, row, member in members:
        if said := container.labels.get(JOB, "").strip():
            row["job"] = printable(said)[:_LONGEST]
        elif member is not None and (name := _name(container, member, given)):
            row["job"], row["job_containers"] = name, member.containers
        cannot = row.get("cannot") or ""
        if "pause" not in cannot and why_no_pause(container, member):
            row["cannot"] = "+".join(filter(None, (cannot, "pause")))


def _membership(watched: Watched) -> Membership | None:
    """Return the job that its processes show, or, if these are not visible, the job that its
    environment at the start shows."""
    container, processes = watched.container, watched.processes.found
    if watched.cgroup is not None and (processes.membership or processes.is_readable):
        return processes.membership
    return membership_at_start(container)


def _name(container: Container, member: Membership, given: Mapping[str, int]) -> str:
    """Return the name of a member's job, "" for none. `given`: by meeting address, the number of
    containers of this host that name it."""
    meeting = _meeting(container, member)
    is_own = member.host == container.program.host_name and given[meeting] == 1
    if not container.service.name or (member.job and not (member.host and is_own)):
        return meeting
    return printable(f"swarm/{container.service.name}")[:_LONGEST]


def _meeting(container: Container, member: Membership) -> str:
    """Return the address where members meet, with its network: an address means something else in
    each network."""
    places = "+".join(container.network.own_names)
    return f"{member.job} on {places}" if member.job and places else member.job


class OwnerColumns:
    """Fills the columns of owners on one host.

    dl-apply writes a journal entry before it changes a container, and removes it after it has
    restored the container. So the journal is read both before and after the limits in force, and an
    entry counts if either reading has it.
    """

    def __init__(self, state_directories: Sequence[Path], engine: Engine) -> None:
        """Read nothing yet. dl-apply keeps its journal in the state directories."""
        able = part(engine, SetsLimits)
        recorded = able.recorded if able else lambda _: Limits()
        self._journal = OwnersJournals(state_directories, recorded)
        self._cpus = engine.cpus
        self._before: Mapping[str, Limits | str] = {}

    def begin(self, container_ids: Collection[str]) -> None:
        """Read the journal, before the limits in force are read."""
        self._before = self._journal.read(container_ids)

    def add(
        self, rows: Sequence[tuple[Watched, Row]], host_row: Row, usable_list: str | None
    ) -> None:
        """Add the columns to rows that have the limits in force already. `usable_list`: the CPUs
        that containers can use."""
        ids = [watched.container.id for watched, _ in rows]
        journaled = {**self._before, **self._journal.read(ids)}
        for watched, row in rows:
            own = watched.container
            limits = journaled.get(own.id) or self._in_force(watched, row, host_row, usable_list)
            if isinstance(limits, str):
                row["gap"] = "; ".join(filter(None, (row["gap"], f"its owner's limits: {limits}")))
            elif limits is not None:
                row |= as_columns(limits, ASKED)

    def _in_force(
        self, watched: Watched, row: Row, host_row: Row, usable_list: str | None
    ) -> Limits | None:
        """Return the limits in force of a container that dl-apply has not changed, None if
        unknown."""
        present, cpus = from_columns(row, IN_FORCE), host_row["cpu_count"]
        quota, weight = present.get("cpus"), present.get("weight")
        if weight is None or quota is None:
            return None
        directory = watched.cgroup.directory("cpu") if watched.cgroup else None
        asked = asked_weight(
            watched.container.recorded.get("weight"),
            weight,
            is_v2=directory is not None and directory.version == 2,
        )
        is_bounded = cpus is None or quota < cpus
        return {
            "cpus": quota if is_bounded else None,
            "weight": asked,
            "cpuset": self._cpu_list(watched, present.get("cpuset"), usable_list),
        }

    def _cpu_list(
        self, watched: Watched, cpuset: str | None, usable_list: str | None
    ) -> str | None:
        """Return a container's own CPU list, None if it is that of its parent cgroup, or all
        CPUs."""
        if cpuset in (None, usable_list) or len(parse_cpus(cpuset or "")) >= self._cpus:
            return None
        above = watched.cgroup.ancestors("cpuset") if watched.cgroup else iter(())
        return None if cpuset == next((directory.cpuset() for directory in above), None) else cpuset
