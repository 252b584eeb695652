"""A container's counters and limits, read from its cgroup and its network namespace."""

from __future__ import annotations

from pathlib import Path

from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroup_files import (
    CpuUsage,
    Directory,
    MemoryUsage,
    Transfer,
    Usage,
    cpu_seconds_v1,
)
from dltools.engine.kernel_files import ROOT, Read, pressure_seconds, read_int, read_text


def usage(cgroup: Cgroup) -> Usage:
    """Read a cgroup's counters and limits; what cannot be read is None."""
    read = cgroup.files.read
    memory, io, pids = (cgroup.directory(name) for name in ("memory", "blkio", "pids"))
    return Usage(
        cpu=_cpu(cgroup),
        memory=memory.memory(read) if memory else MemoryUsage(),
        io=io.io(read) if io else Transfer(),
        threads=_thread_count(cgroup, pids.path if pids else None),
        pressure=_pressure(cgroup),
    )


def _thread_count(cgroup: Cgroup, pids: Path | None) -> int | None:
    """Return how many threads there are, counted where the controller pids is elsewhere."""
    counted = read_int(f"{pids}/pids.current", cgroup.files.read) if pids else None
    return counted if counted is not None or not cgroup.has_those_below else len(cgroup.threads)


def _cpu(cgroup: Cgroup) -> CpuUsage:
    read = cgroup.files.read
    cpu, cpuset, cpuacct = (cgroup.directory(name) for name in ("cpu", "cpuset", "cpuacct"))
    found = cpu.cpu(read) if cpu else CpuUsage()
    if cpuset:
        found = found._replace(cpuset=cpuset.cpuset(read))
    if cpuacct and cpuacct.version == 1:
        found = found._replace(seconds=cpu_seconds_v1(cpuacct.path, read))
    if cgroup.has_those_below and found.seconds is None and cgroup.unified is not None:
        # Version 2 counts without a controller, also where version 1 has them all.
        found = found._replace(seconds=Directory(cgroup.unified, 2).cpu(read).seconds)
    return found


def cpu_seconds(cgroup: Cgroup) -> float | None:
    """Return the CPU seconds that a cgroup has used, None if they cannot be read."""
    return _cpu(cgroup).seconds


def _pressure(cgroup: Cgroup) -> dict[str, float]:
    """Return pressure in seconds; version 1 hosts keep it in the unified hierarchy too."""
    if cgroup.unified is None:
        return {}
    read = cgroup.files.read
    return {
        name: total
        for name in ("cpu", "memory", "io")
        if (total := pressure_seconds(f"{cgroup.unified}/{name}.pressure", read)) is not None
    }


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
