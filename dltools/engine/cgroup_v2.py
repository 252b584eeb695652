"""The files of a cgroup of version 2, one directory for all controllers."""

from __future__ import annotations

import re
from pathlib import Path

from dltools.engine.kernel_files import Read, number_after, read_flat, read_int
from dltools.engine.quota import quota_in_cores
from dltools.engine.usage import CpuUsage, MemoryUsage, Transfer
from dltools.engine.weight import weight_from_v2


def quota(directory: Path, read: Read) -> float | None:
    """Return the CPU quota in cores, None for no quota."""
    quota_us, _, period_us = read(f"{directory}/cpu.max").strip().partition(" ")
    if not (quota_us.isdigit() and period_us.isdigit()):
        return None
    return quota_in_cores(int(quota_us), int(period_us))


def weight(directory: Path, read: Read) -> float | None:
    """Return the CPU weight in Docker's shares."""
    kernel_weight = read_int(f"{directory}/cpu.weight", read)
    return None if kernel_weight is None else weight_from_v2(kernel_weight)


def cpuset(directory: Path, read: Read) -> str | None:
    """Return the list of CPUs that the cgroup may really use."""
    effective = read(f"{directory}/cpuset.cpus.effective").strip()
    return effective or read(f"{directory}/cpuset.cpus").strip() or None


def cpu(directory: Path, read: Read) -> CpuUsage:
    """Return the CPU time used, how long the quota has held the cgroup back, and the limits."""
    stat = read_flat(f"{directory}/cpu.stat", read)
    return CpuUsage(
        seconds=stat["usage_usec"] / 1e6 if "usage_usec" in stat else None,
        throttled_seconds=stat["throttled_usec"] / 1e6 if "throttled_usec" in stat else None,
        quota=quota(directory, read),
        weight=weight(directory, read),
    )


def memory(directory: Path, read: Read) -> MemoryUsage:
    """Return the memory used, and its limit."""
    used = read_int(f"{directory}/memory.current", read)
    stat = "\n" + read(f"{directory}/memory.stat")
    inactive = number_after("\ninactive_file ", stat) or 0
    return MemoryUsage(
        used=used,
        working_set=None if used is None else max(0, used - inactive),
        anon=number_after("\nanon ", stat),
        file=number_after("\nfile ", stat),
        shmem=number_after("\nshmem ", stat),
        limit=read_int(f"{directory}/memory.max", read),
    )


def io(directory: Path, read: Read) -> Transfer:
    """Return the bytes read from and written to block devices."""
    text = read(f"{directory}/io.stat")
    taken, written = (
        sum(map(int, re.findall(rf"\b{key}=(\d+)", text))) for key in ("rbytes", "wbytes")
    )
    return Transfer(taken, written)
