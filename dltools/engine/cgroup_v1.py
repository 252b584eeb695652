"""The files of a cgroup of version 1, a directory for each controller."""

from __future__ import annotations

import re
from pathlib import Path

from dltools.engine.kernel_files import Read, number_after, read_flat, read_int
from dltools.engine.quota import quota_in_cores
from dltools.engine.usage import CpuUsage, MemoryUsage, Transfer

_UNLIMITED = 1 << 62
"""Version 1 writes "no memory limit" as the largest multiple of a page; no real one comes near."""

_IO_FILES = ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes")


def quota(directory: Path, read: Read) -> float | None:
    """Return the CPU quota in cores, None for no quota."""
    quota_us = read_int(f"{directory}/cpu.cfs_quota_us", read)
    period_us = read_int(f"{directory}/cpu.cfs_period_us", read)
    return quota_in_cores(quota_us, period_us) if period_us else None


def weight(directory: Path, read: Read) -> float | None:
    """Return the CPU weight in Docker's shares."""
    shares = read_int(f"{directory}/cpu.shares", read)
    return None if shares is None else float(shares)


def cpuset(directory: Path, read: Read) -> str | None:
    """Return the list of CPUs that the cgroup may really use."""
    effective = read(f"{directory}/cpuset.effective_cpus").strip()
    return effective or read(f"{directory}/cpuset.cpus").strip() or None


def cpu(directory: Path, read: Read) -> CpuUsage:
    """Return the limits of the controller cpu, and how long the quota has held the cgroup back."""
    throttled = read_flat(f"{directory}/cpu.stat", read).get("throttled_time")
    return CpuUsage(
        throttled_seconds=None if throttled is None else throttled / 1e9,
        quota=quota(directory, read),
        weight=weight(directory, read),
    )


def cpu_seconds(directory: Path, read: Read) -> float | None:
    """Return the CPU time used; `directory` is that of the controller cpuacct."""
    nanos = read_int(f"{directory}/cpuacct.usage", read)
    return None if nanos is None else nanos / 1e9


def memory(directory: Path, read: Read) -> MemoryUsage:
    """Return the memory used, and its limit."""
    used = read_int(f"{directory}/memory.usage_in_bytes", read)
    limit = read_int(f"{directory}/memory.limit_in_bytes", read)
    stat = "\n" + read(f"{directory}/memory.stat")
    inactive = number_after("\ntotal_inactive_file ", stat) or 0
    return MemoryUsage(
        used=used,
        working_set=None if used is None else max(0, used - inactive),
        anon=number_after("\ntotal_rss ", stat),
        file=number_after("\ntotal_cache ", stat),
        shmem=number_after("\ntotal_shmem ", stat),
        limit=None if limit is None or limit >= _UNLIMITED else limit,
    )


def io(directory: Path, read: Read) -> Transfer:
    """Return the bytes read from and written to block devices."""
    for name in _IO_FILES:
        if text := read(f"{directory}/{name}"):
            taken, written = (
                sum(map(int, re.findall(rf" {key} (\d+)", text))) for key in ("Read", "Write")
            )
            return Transfer(taken, written)
    return Transfer()
