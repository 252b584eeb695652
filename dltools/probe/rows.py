"""Observations of containers, events and progress, as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from dltools.engine.api_usage import network_of, usage_of
from dltools.engine.cgroup import Cgroup
from dltools.engine.containers import Container
from dltools.engine.counters import network_bytes, usage
from dltools.engine.quota import configured_quota
from dltools.engine.usage import CpuUsage, MemoryUsage, Transfer
from dltools.engine.weight import configured_weight
from dltools.observations.table import Row
from dltools.probe.progress import Point

_N = TypeVar("_N", int, float)

NO_STATS: Mapping[str, Any] = {}


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
    stats: Mapping[str, Any] = NO_STATS,
) -> Row:
    """Return a container's counters, and the limits in force: without a cgroup, the counters in the
    engine's `stats`, and the limits that the engine names."""
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
        return row | _columns_of_api(stats) | _configured_limits(container, host_row)
    used = usage(group)
    return row | {
        **_cpu_columns(used.cpu, host_row),
        **{f"{name}_pressure_seconds": value for name, value in used.pressure.items()},
        "thread_count": used.threads,
        **_memory_columns(used.memory, host_row),
        **_transfer_columns(used.io, network_bytes(container.pid, read=group.files.read)),
    }


def _columns_of_api(stats: Mapping[str, Any]) -> Row:
    """Return the counters that the engine's API tells, {} if it tells none."""
    if not stats:
        return {}
    used = usage_of(stats)
    memory = _memory_columns(used.memory, {"memory_total_bytes": None})
    transfer = _transfer_columns(used.io, network_of(stats))
    return (
        memory
        | transfer
        | {
            "cpu_seconds": used.cpu.seconds,
            "cpu_throttled_seconds": used.cpu.throttled_seconds,
            "thread_count": used.threads,
        }
    )


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


def _configured_limits(container: Container, host_row: Row) -> Row:
    config = container.host_config
    memory = config.get("Memory") or None
    return {
        "cpu_limit_cores": _bounded(configured_quota(config), host_row["cpu_count"]),
        "cpu_weight": configured_weight(config),
        "cpuset": config.get("CpusetCpus") or None,
        "memory_limit_bytes": _bounded(memory, host_row["memory_total_bytes"]),
    }


def _bounded(limit: _N | None, whole: _N | None) -> _N | None:
    """Return a limit, at most the whole of the host; None for both means unknown."""
    return min((one for one in (limit, whole) if one is not None), default=None)
