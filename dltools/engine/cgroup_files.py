"""What the files of a cgroup say of its limits and counters, on version 1 and on version 2.

Version 1 has a directory for each controller, version 2 one for all. `Cgroup` finds the directory
of a controller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from dltools.engine.kernel_reading import ROOT, Read, number_after, read_flat, read_int, read_text
from dltools.engine.kernel_scales import quota_in_cores, weight_from_v2

_UNLIMITED = 1 << 62
"""Version 1 writes "no memory limit" as the largest multiple of a page; no real one comes near."""


class CpuUsage(NamedTuple):
    """Use of CPUs. A field is None if its file is missing."""

    seconds: float | None = None
    """The CPU seconds used so far."""

    throttled_seconds: float | None = None
    """For how many seconds so far its quota stopped it."""


class MemoryUsage(NamedTuple):
    """Memory in bytes. A field is None if its file is missing."""

    used: int | None = None
    """All memory that counts for it."""

    working_set: int | None = None
    """What it uses without files that the kernel may drop."""

    anon: int | None = None
    """Memory of no file."""

    file: int | None = None
    """Memory that holds parts of files."""

    shmem: int | None = None
    """Memory that processes share."""

    limit: int | None = None
    """The most that it may use; also None if there is no limit, see `is_limit_known`."""

    @property
    def is_limit_known(self) -> bool:
        """Whether `limit` None means that there is no limit."""
        return self.used is not None


class Transfer(NamedTuple):
    """Bytes in and out; None if they are not counted."""

    read: int | None = None
    """Read so far, or received."""

    written: int | None = None
    """Written so far, or sent."""


class Usage(NamedTuple):
    """Counters of a container, and its limit of memory."""

    cpu: CpuUsage = CpuUsage()
    """Of CPUs."""

    memory: MemoryUsage = MemoryUsage()
    """Of memory."""

    io: Transfer = Transfer()
    """Of block devices."""

    threads: int | None = None
    """How many it has, None if that is unknown."""

    pressure: Mapping[str, float] = MappingProxyType({})
    """For how many seconds so far some of it waited for cpu, memory and io, by these names."""

    network: Transfer = Transfer()
    """Of all its interfaces."""


class _Names(NamedTuple):
    """What a version calls files and lines: the CPUs in use, the memory used and its limit, its
    parts (inactive files, anonymous, files, shared) in memory.stat; the files of bytes read and
    written, and what stands before these numbers there."""

    cpus: str
    used: str
    limit: str
    parts: tuple[str, str, str, str]
    transfers: tuple[str, ...]
    taken: str
    written: str


_NAMES = {
    1: _Names(
        "cpuset.effective_cpus",
        "memory.usage_in_bytes",
        "memory.limit_in_bytes",
        ("total_inactive_file", "total_rss", "total_cache", "total_shmem"),
        ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"),
        " Read ",
        " Write ",
    ),
    2: _Names(
        "cpuset.cpus.effective",
        "memory.current",
        "memory.max",
        ("inactive_file", "anon", "file", "shmem"),
        ("io.stat",),
        r"\brbytes=",
        r"\bwbytes=",
    ),
}


class Directory(NamedTuple):
    """The directory of one controller of a cgroup."""

    path: Path
    """Where it is."""

    version: int
    """The cgroup version of its files, 1 or 2."""

    def quota(self, read: Read = read_text) -> float | None:
        """Return the CPU quota in cores, None for no quota."""
        if self.version == 1:
            quota_us = read_int(f"{self.path}/cpu.cfs_quota_us", read)
            period_us = read_int(f"{self.path}/cpu.cfs_period_us", read)
            return quota_in_cores(quota_us, period_us) if period_us else None
        quota, _, period = read(f"{self.path}/cpu.max").strip().partition(" ")
        is_told = quota.isdigit() and period.isdigit()
        return quota_in_cores(int(quota), int(period)) if is_told else None

    def weight(self, read: Read = read_text) -> float | None:
        """Return the CPU weight in Docker's shares: 1024 is the default of both versions."""
        name = "cpu.shares" if self.version == 1 else "cpu.weight"
        number = read_int(f"{self.path}/{name}", read)
        if number is None:
            return None
        return float(number) if self.version == 1 else weight_from_v2(number)

    def cpuset(self, read: Read = read_text) -> str | None:
        """Return the list of CPUs that the cgroup may really use, None if it is unknown."""
        effective = read(f"{self.path}/{_NAMES[self.version].cpus}").strip()
        return effective or read(f"{self.path}/cpuset.cpus").strip() or None

    def cpu(self, read: Read) -> CpuUsage:
        """Return the counters of the controller cpu. Of version 1 the CPU time used is the
        controller cpuacct's."""
        stat = read_flat(f"{self.path}/cpu.stat", read)
        key, scale = ("throttled_time", 1e9) if self.version == 1 else ("throttled_usec", 1e6)
        used, throttled = stat.get("usage_usec"), stat.get(key)
        return CpuUsage(
            seconds=None if used is None else used / 1e6,
            throttled_seconds=None if throttled is None else throttled / scale,
        )

    def memory(self, read: Read) -> MemoryUsage:
        """Return the memory used, and its limit."""
        names = _NAMES[self.version]
        used = read_int(f"{self.path}/{names.used}", read)
        limit = read_int(f"{self.path}/{names.limit}", read)
        stat = "\n" + read(f"{self.path}/memory.stat")
        inactive, anon, file, shmem = (number_after(f"\n{part} ", stat) for part in names.parts)
        return MemoryUsage(
            used=used,
            working_set=None if used is None else max(0, used - (inactive or 0)),
            anon=anon,
            file=file,
            shmem=shmem,
            limit=None if limit is None or limit >= _UNLIMITED else limit,
        )

    def io(self, read: Read) -> Transfer:
        """Return the bytes read from and written to block devices."""
        names = _NAMES[self.version]
        for name in names.transfers:
            if text := read(f"{self.path}/{name}"):
                taken, written = (
                    sum(map(int, re.findall(rf"{key}(\d+)", text)))
                    for key in (names.taken, names.written)
                )
                return Transfer(taken, written)
        return Transfer() if self.version == 1 else Transfer(0, 0)


def network_bytes(pid: int, root: Path = ROOT, read: Read = read_text) -> Transfer:
    """Return the bytes received and sent in a process's network namespace, lo left out."""
    received = sent = None
    for line in read(f"{root}/proc/{pid}/net/dev").splitlines():
        name, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and name.strip() != "lo" and len(fields) >= 9:
            received = (received or 0) + int(fields[0])
            sent = (sent or 0) + int(fields[8])
    return Transfer(received, sent)
