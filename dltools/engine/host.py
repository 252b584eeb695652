"""The host: how much CPU and memory containers can really use, and how busy it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dltools.engine.cgroup import Cgroup, Mount
from dltools.engine.cgroup_files import Directory
from dltools.engine.kernel_reading import ROOT, pressure_seconds, read_text
from dltools.notation.resources import format_cpus, parse_cpus
from dltools.observations.table import Row

_TICKS_PER_SECOND = 100.0
"""USER_HZ, the unit of /proc/stat: 100 on every Linux port that Docker runs on."""


@dataclass(frozen=True, slots=True)
class SharedCgroups:
    """The cgroups that hold all the containers, of two controllers, the innermost first. Their
    limits hold for all the containers together."""

    cpuset: list[Directory]
    cpu: list[Directory]


def shared_cgroups(containers: Iterable[Cgroup], mounted: list[Mount]) -> SharedCgroups:
    """Return the cgroups that hold some containers; they change only when containers come or go."""
    cgroups = list(containers)
    return SharedCgroups(_shared(cgroups, "cpuset", mounted), _shared(cgroups, "cpu", mounted))


def measure(shared: SharedCgroups, root: Path = ROOT) -> Row:
    """Return the host's columns, read from /proc and the cgroup tree."""
    memory = memory_bytes(root)
    return {
        "cpu_count": usable_cpus(shared, root),
        "cpu_siblings": cores(root),
        "cpu_seconds": busy_seconds(root),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        **{
            f"{name}_pressure_seconds": pressure_seconds(root / "proc/pressure" / name)
            for name in ("cpu", "memory", "io")
        },
    }


@cache
def cores(root: Path = ROOT) -> str | None:
    """Return the CPUs of each core, joined by +; None where no core is known to have several."""
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    lists = {tuple(parse_cpus(read_text(path).strip())) for path in files} - {()}
    has_several = any(len(cpus) > 1 for cpus in lists)
    return "+".join(map(format_cpus, sorted(lists))) if has_several else None


def usable_cpus(shared: SharedCgroups, root: Path = ROOT) -> float | None:
    """Return how many CPUs the containers can use together.

    These are the CPUs online, but no more than the cpuset of the cgroup that holds all the
    containers has, nor than the smallest quota on it or above it (of a slice or --cgroup-parent).
    """
    online = online_cpus(root)
    bounds = [float(online)] if online else []
    if innermost := parse_cpus(usable_cpu_list(shared) or ""):
        bounds.append(float(len(innermost)))
    bounds += [quota for directory in shared.cpu if (quota := directory.quota())]
    return min(bounds, default=None)


def online_cpus(root: Path = ROOT) -> int:
    """Return how many CPUs are online, 0 where that cannot be read."""
    return len(re.findall(r"^cpu\d+ ", read_text(root / "proc/stat"), re.M))


def usable_cpu_list(shared: SharedCgroups) -> str | None:
    """Return the CPUs of the innermost cgroup that holds all the containers and says them, None
    where none does."""
    lists = (directory.cpuset() for directory in shared.cpuset)
    return next((text for text in lists if text and parse_cpus(text)), None)


def _shared(containers: list[Cgroup], controller: str, mounted: list[Mount]) -> list[Directory]:
    """Return the cgroups that hold all the containers, the innermost first."""
    chains = [list(container.ancestors(controller)) for container in containers]
    if not chains:
        tops = [m for m in mounted if controller in m.controllers] or [
            m for m in mounted if not m.controllers
        ]
        return [Directory(m.directory, 1 if m.controllers else 2) for m in tops[:1]]
    common = set(chains[0]).intersection(*map(set, chains[1:]))
    return [level for level in chains[0] if level in common]


def busy_seconds(root: Path = ROOT) -> float | None:
    """Return the CPU seconds used on all CPUs since boot: neither idle nor waiting for I/O."""
    times = _cpu_times(root)
    if times is None:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = times
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_SECOND


def idle_seconds(root: Path = ROOT) -> float | None:
    """Return the CPU seconds since boot for which CPUs were idle, or waited for I/O."""
    times = _cpu_times(root)
    return None if times is None else (times[3] + times[4]) / _TICKS_PER_SECOND


def _cpu_times(root: Path) -> list[int] | None:
    """Return the first eight times of all CPUs in ticks."""
    match = re.search(r"^cpu +(.*)", read_text(root / "proc/stat"), re.M)
    return [int(field) for field in (match[1].split() + ["0"] * 8)[:8]] if match else None


def memory_bytes(root: Path = ROOT) -> dict[str, int]:
    """Return the sizes of /proc/meminfo by their names there."""
    sizes = re.findall(r"^(\w+): +(\d+) kB", read_text(root / "proc/meminfo"), re.M)
    return {name: int(kilobytes) * 1024 for name, kilobytes in sizes}
