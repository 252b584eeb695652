"""What the files of a cgroup say of its limits and counters, on version 1 and on version 2.

Version 1 has a directory for each controller, version 2 one for all. `Cgroup` finds the directory
of a controller, and which of the two classes reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from dltools.engine.kernel_files import Read, number_after, read_flat, read_int
from dltools.engine.scales import quota_in_cores, weight_from_v2

_UNLIMITED = 1 << 62
"""Version 1 writes "no memory limit" as the largest multiple of a page; no real one comes near."""

_V1_IO_FILES = ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes")


class CpuUsage(NamedTuple):
    """CPU time in seconds, quota in cores, weight in Docker's shares. A field is None if its file
    is missing; `quota` is also None if there is none, see `is_quota_known`."""

    seconds: float | None = None
    throttled_seconds: float | None = None
    quota: float | None = None
    weight: float | None = None
    cpuset: str | None = None

    @property
    def is_quota_known(self) -> bool:
        """Whether `quota` None means that there is no quota."""
        return self.weight is not None


class MemoryUsage(NamedTuple):
    """Memory in bytes. A field is None if its file is missing; `limit` is also None if there is
    none, see `is_limit_known`."""

    used: int | None = None
    working_set: int | None = None
    anon: int | None = None
    file: int | None = None
    shmem: int | None = None
    limit: int | None = None

    @property
    def is_limit_known(self) -> bool:
        """Whether `limit` None means that there is no limit."""
        return self.used is not None


class Transfer(NamedTuple):
    """Bytes in and out: read and written, or received and sent; None if they are not counted."""

    read: int | None = None
    written: int | None = None


class Usage(NamedTuple):
    """Counters and limits of a container. `pressure` maps cpu, memory and io to seconds."""

    cpu: CpuUsage = CpuUsage()
    memory: MemoryUsage = MemoryUsage()
    io: Transfer = Transfer()
    threads: int | None = None
    pressure: Mapping[str, float] = MappingProxyType({})
    network: Transfer = Transfer()


class CgroupFiles(Protocol):
    """What both versions tell, given a controller's directory."""

    def quota(self, directory: Path, read: Read) -> float | None:
        """Return the CPU quota in cores, None for no quota."""

    def weight(self, directory: Path, read: Read) -> float | None:
        """Return the CPU weight in Docker's shares."""

    def cpuset(self, directory: Path, read: Read) -> str | None:
        """Return the list of CPUs that the cgroup may really use."""

    def cpu(self, directory: Path, read: Read) -> CpuUsage:
        """Return the limits and counters of the controller cpu."""

    def memory(self, directory: Path, read: Read) -> MemoryUsage:
        """Return the memory used, and its limit."""

    def io(self, directory: Path, read: Read) -> Transfer:
        """Return the bytes read from and written to block devices."""


class _FilesV1:
    def quota(self, directory: Path, read: Read) -> float | None:
        quota_us = read_int(f"{directory}/cpu.cfs_quota_us", read)
        period_us = read_int(f"{directory}/cpu.cfs_period_us", read)
        return quota_in_cores(quota_us, period_us) if period_us else None

    def weight(self, directory: Path, read: Read) -> float | None:
        shares = read_int(f"{directory}/cpu.shares", read)
        return None if shares is None else float(shares)

    def cpuset(self, directory: Path, read: Read) -> str | None:
        effective = read(f"{directory}/cpuset.effective_cpus").strip()
        return effective or read(f"{directory}/cpuset.cpus").strip() or None

    def cpu(self, directory: Path, read: Read) -> CpuUsage:
        """Without the CPU time used, which the controller cpuacct has: `cpu_seconds_v1`."""
        throttled = read_flat(f"{directory}/cpu.stat", read).get("throttled_time")
        return CpuUsage(
            throttled_seconds=None if throttled is None else throttled / 1e9,
            quota=self.quota(directory, read),
            weight=self.weight(directory, read),
        )

    def memory(self, directory: Path, read: Read) -> MemoryUsage:
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

    def io(self, directory: Path, read: Read) -> Transfer:
        for name in _V1_IO_FILES:
            if text := read(f"{directory}/{name}"):
                taken, written = (
                    sum(map(int, re.findall(rf" {key} (\d+)", text))) for key in ("Read", "Write")
                )
                return Transfer(taken, written)
        return Transfer()


class _FilesV2:
    def quota(self, directory: Path, read: Read) -> float | None:
        quota_us, _, period_us = read(f"{directory}/cpu.max").strip().partition(" ")
        if not (quota_us.isdigit() and period_us.isdigit()):
            return None
        return quota_in_cores(int(quota_us), int(period_us))

    def weight(self, directory: Path, read: Read) -> float | None:
        kernel_weight = read_int(f"{directory}/cpu.weight", read)
        return None if kernel_weight is None else weight_from_v2(kernel_weight)

    def cpuset(self, directory: Path, read: Read) -> str | None:
        effective = read(f"{directory}/cpuset.cpus.effective").strip()
        return effective or read(f"{directory}/cpuset.cpus").strip() or None

    def cpu(self, directory: Path, read: Read) -> CpuUsage:
        stat = read_flat(f"{directory}/cpu.stat", read)
        return CpuUsage(
            seconds=stat["usage_usec"] / 1e6 if "usage_usec" in stat else None,
            throttled_seconds=stat["throttled_usec"] / 1e6 if "throttled_usec" in stat else None,
            quota=self.quota(directory, read),
            weight=self.weight(directory, read),
        )

    def memory(self, directory: Path, read: Read) -> MemoryUsage:
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

    def io(self, directory: Path, read: Read) -> Transfer:
        text = read(f"{directory}/io.stat")
        taken, written = (
            sum(map(int, re.findall(rf"\b{key}=(\d+)", text))) for key in ("rbytes", "wbytes")
        )
        return Transfer(taken, written)


FILES: Mapping[int, CgroupFiles] = {1: _FilesV1(), 2: _FilesV2()}
"""How each version's files are read."""


def cpu_seconds_v1(directory: Path, read: Read) -> float | None:
    """Return the CPU time used; `directory` is that of version 1's controller cpuacct."""
    nanos = read_int(f"{directory}/cpuacct.usage", read)
    return None if nanos is None else nanos / 1e9
