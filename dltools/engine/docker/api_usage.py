"""A container's counters as the engine's API tells them, where its cgroup is on another machine.

The API has no pressure, and its limits are those that the engine was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dltools.engine.cgroup_files import CpuUsage, MemoryUsage, Transfer, Usage

_NANO = 1e9


def usage_of(stats: Mapping[str, Any]) -> Usage:
    """Return the counters in an answer of the API's `stats`; what it lacks is None."""
    cpu, throttled = _part(stats, "cpu_stats"), _part(stats, "cpu_stats", "throttling_data")
    return Usage(
        cpu=CpuUsage(
            seconds=_seconds(_part(cpu, "cpu_usage").get("total_usage")),
            throttled_seconds=_seconds(throttled.get("throttled_time")),
        ),
        memory=_memory(_part(stats, "memory_stats")),
        io=_transfer(_part(stats, "blkio_stats").get("io_service_bytes_recursive")),
        threads=_count(_part(stats, "pids_stats").get("current")),
        network=_network(stats),
    )


def _network(stats: Mapping[str, Any]) -> Transfer:
    """Return the bytes received and sent on all interfaces."""
    found = stats.get("networks")
    if not isinstance(found, Mapping):
        return Transfer()
    ports = [port for port in found.values() if isinstance(port, Mapping)]
    return Transfer(
        sum(_count(port.get("rx_bytes")) or 0 for port in ports),
        sum(_count(port.get("tx_bytes")) or 0 for port in ports),
    )


def _memory(found: Mapping[str, Any]) -> MemoryUsage:
    """Return memory; the names of its parts differ between cgroup versions 1 and 2."""
    parts = _part(found, "stats")

    def part(*names: str) -> int | None:
        return next((count for n in names if (count := _count(parts.get(n))) is not None), None)

    used, inactive = _count(found.get("usage")), part("total_inactive_file", "inactive_file")
    return MemoryUsage(
        used=used,
        working_set=None if used is None or inactive is None else max(0, used - inactive),
        anon=part("total_rss", "anon"),
        file=part("total_cache", "file"),
        shmem=part("total_shmem", "shmem"),
        limit=_count(found.get("limit")) or None,
    )


def _transfer(entries: Any) -> Transfer:
    if not isinstance(entries, list):
        return Transfer()
    sums = {"read": 0, "write": 0}
    for entry in entries:
        op = str(entry.get("op")).lower() if isinstance(entry, Mapping) else ""
        if op in sums:
            sums[op] += _count(entry.get("value")) or 0
    return Transfer(sums["read"], sums["write"])


def _part(found: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        part = found.get(name)
        found = part if isinstance(part, Mapping) else {}
    return found


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _seconds(nanoseconds: Any) -> float | None:
    count = _count(nanoseconds)
    return None if count is None else count / _NANO
