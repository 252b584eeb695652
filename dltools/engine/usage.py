"""What a container uses and what limits it, as its cgroup shows: seconds, bytes, cores."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


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
    """Counters and limits of one cgroup. `pressure` maps cpu, memory and io to seconds."""

    cpu: CpuUsage = CpuUsage()
    memory: MemoryUsage = MemoryUsage()
    io: Transfer = Transfer()
    threads: int | None = None
    pressure: Mapping[str, float] = MappingProxyType({})
