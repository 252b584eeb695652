"""Observations of containers, events and progress, as rows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TypeVar

from dltools.engine.cgroup import Cgroup
from dltools.engine.containers import Container
from dltools.engine.counters import network_bytes, usage
from dltools.engine.quota import configured_quota
from dltools.engine.weight import configured_weight
from dltools.observations.table import Row
from dltools.probe.progress import Point

_N = TypeVar("_N", int, float)


def progress_row(time: datetime, host: str, id_: str, name: str, point: Point) -> Row:
    """Return a point as an observation."""
    return {
        "time": time,
        "host": host,
        "kind": "progress",
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
    container: Container, group: Cgroup | None, gap: str | None, host_row: Row
) -> Row:
    """Return a container's counters, and the limits in force."""
    row: Row = {
        "kind": "container",
        "container_id": container.id,
        "container_name": container.name,
        "image": container.image,
        "state": container.state,
        "started_at": container.started,
        "labels": json.dumps(container.dltools_labels, sort_keys=True)
        if container.dltools_labels
        else None,
        "gap": gap,
    }
    if group is None:
        return row | _limits_by_inspection(container, host_row)
    used = usage(group)
    network = network_bytes(container.pid, read=group.files.read)
    return row | {
        "cpu_seconds": used.cpu.seconds,
        "cpu_throttled_seconds": used.cpu.throttled_seconds,
        **{f"{name}_pressure_seconds": value for name, value in used.pressure.items()},
        "cpu_limit_cores": _bounded(used.cpu.quota, host_row["cpu_count"])
        if used.cpu.is_quota_known
        else None,
        "cpu_weight": used.cpu.weight,
        "cpuset": used.cpu.cpuset,
        "thread_count": used.threads,
        "memory_usage_bytes": used.memory.used,
        "memory_working_set_bytes": used.memory.working_set,
        "memory_anon_bytes": used.memory.anon,
        "memory_file_bytes": used.memory.file,
        "memory_shmem_bytes": used.memory.shmem,
        "memory_limit_bytes": _bounded(used.memory.limit, host_row["memory_total_bytes"])
        if used.memory.is_limit_known
        else None,
        "io_read_bytes": used.io.read,
        "io_write_bytes": used.io.written,
        "network_receive_bytes": network.read,
        "network_transmit_bytes": network.written,
    }


def _bounded(limit: _N | None, whole: _N | None) -> _N | None:
    return whole if limit is None else limit if whole is None else min(limit, whole)


def _limits_by_inspection(container: Container, host_row: Row) -> Row:
    config = container.host_config
    return {
        "cpu_limit_cores": _bounded(configured_quota(config), host_row["cpu_count"]),
        "cpu_weight": configured_weight(config),
        "memory_limit_bytes": _bounded(
            config.get("Memory") or None, host_row["memory_total_bytes"]
        ),
    }
