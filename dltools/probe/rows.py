"""Observations of containers, events and progress, as rows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TypeVar

from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroup_counters import network_bytes, usage
from dltools.engine.cgroup_files import CpuUsage, MemoryUsage, Transfer, Usage
from dltools.engine.interface import Container, RecordedLimits
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.observations.table import Row
from dltools.probe.progress import Point

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
        "source": point.source,
    }


def container_row(
    container: Container,
    group: Cgroup | None,
    gap: str | None,
    host_row: Row,
    used: Usage | None = None,
) -> Row:
    """Return a container's counters, and the limits in force: without a cgroup, the counters and
    limits that the engine tells."""
    labels = container.dltools_labels
    row: Row = {
        "kind": "container",
        "container_id": container.id,
        "container_name": container.name,
        "image": container.image,
        "state": container.state,
        "started_at": container.started,
        "labels": json.dumps(labels, sort_keys=True) if labels else None,
        "gap": gap,
    }
    if group is None:
        return row | _columns_elsewhere(used) | _recorded_limits(container.recorded, host_row)
    here = usage(group)
    return row | {
        **_cpu_columns(here.cpu, host_row),
        **{f"{name}_pressure_seconds": value for name, value in here.pressure.items()},
        "thread_count": here.threads,
        **_memory_columns(here.memory, host_row),
        **_transfer_columns(here.io, network_bytes(container.pid, read=group.files.read)),
    }


def _columns_elsewhere(used: Usage | None) -> Row:
    """Return the counters that the engine tells, {} if it tells none."""
    if used is None:
        return {}
    memory = _memory_columns(used.memory, {"memory_total_bytes": None})
    return {
        **memory,
        **_transfer_columns(used.io, used.network),
        "cpu_seconds": used.cpu.seconds,
        "cpu_throttled_seconds": used.cpu.throttled_seconds,
        "thread_count": used.threads,
    }


def _cpu_columns(cpu: CpuUsage, host_row: Row) -> Row:
    limit = _bounded(cpu.quota, host_row["cpu_count"]) if cpu.is_quota_known else None
    return {
        "cpu_seconds": cpu.seconds,
        "cpu_throttled_seconds": cpu.throttled_seconds,
        "cpu_limit_cores": limit,
        "cpu_weight": cpu.weight,
        "cpuset": cpu.cpuset,
    }


def _memory_columns(memory: MemoryUsage, host_row: Row) -> Row:
    total = host_row["memory_total_bytes"]
    return {
        "memory_usage_bytes": memory.used,
        "memory_working_set_bytes": memory.working_set,
        "memory_anon_bytes": memory.anon,
        "memory_file_bytes": memory.file,
        "memory_shmem_bytes": memory.shmem,
        "memory_limit_bytes": _bounded(memory.limit, total) if memory.is_limit_known else None,
    }


def _transfer_columns(io: Transfer, network: Transfer) -> Row:
    return {
        "io_read_bytes": io.read,
        "io_write_bytes": io.written,
        "network_receive_bytes": network.read,
        "network_transmit_bytes": network.written,
    }


def _recorded_limits(recorded: RecordedLimits, host_row: Row) -> Row:
    return {
        "cpu_limit_cores": _bounded(recorded.cpus, host_row["cpu_count"]),
        "cpu_weight": float(recorded.weight or DEFAULT_CPU_WEIGHT),
        "cpuset": recorded.cpuset or None,
        "memory_limit_bytes": _bounded(recorded.memory, host_row["memory_total_bytes"]),
    }


def _bounded(limit: _N | None, whole: _N | None) -> _N | None:
    """Return a limit, at most the whole of the host; None for both means unknown."""
    return min((one for one in (limit, whole) if one is not None), default=None)
