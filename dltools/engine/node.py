"""The node: how much CPU and memory containers can really use, and how busy it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dltools.cpus import parse_cpus
from dltools.engine import cgroup
from dltools.engine.cgroup import ROOT, Cgroup, Mount
from dltools.observations.table import Row

_TICKS_PER_SECOND = 100.0
"""USER_HZ: what /proc/stat counts in, 100 on every Linux port that Docker runs on."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The cgroups that hold all the containers, the innermost first, with their versions: what
    bounds the CPUs that these can use together."""

    cpuset: list[tuple[Path, int]]
    cpu: list[tuple[Path, int]]


def bounds(containers: Iterable[Cgroup], mounted: list[Mount]) -> Bounds:
    """Return what bounds some containers; it changes only as they come and go."""
    found = list(containers)
    return Bounds(_shared(found, "cpuset", mounted), _shared(found, "cpu", mounted))


def sample(bounding: Bounds, root: Path = ROOT) -> Row:
    """Return the node's columns, read from /proc and the cgroup tree."""
    memory = _meminfo(root)
    return {
        "cpu_count": usable_cpus(bounding, root),
        "cpu_seconds": busy_seconds(root),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        **{
            f"{name}_pressure_seconds": cgroup.pressure_seconds(root / "proc/pressure" / name)
            for name in ("cpu", "memory", "io")
        },
    }


def usable_cpus(bounding: Bounds, root: Path = ROOT) -> float | None:
    """Return the CPUs that the containers can use together.

    The CPUs online, cut to the cpuset of the cgroup that holds all the containers, and to the
    tightest quota on it or above it (a slice or --cgroup-parent with a quota).
    """
    online = len(re.findall(r"^cpu\d+ ", cgroup.read_text(root / "proc/stat"), re.M))
    bound = float(online) or None
    for directory, version in bounding.cpuset:
        if cpus := parse_cpus(cgroup.cpuset(directory, version) or ""):
            bound = min(bound or 1e9, len(cpus))
            break
    for directory, version in bounding.cpu:
        if quota := cgroup.quota_cores(directory, version):
            bound = min(bound or 1e9, quota)
    return bound


def _shared(
    containers: list[Cgroup], controller: str, mounted: list[Mount]
) -> list[tuple[Path, int]]:
    """Return the cgroups that hold all the containers, the innermost first."""
    chains = [list(one.ancestors(controller)) for one in containers]
    if not chains:
        tops = [m for m in mounted if controller in m.controllers] or [
            m for m in mounted if not m.controllers
        ]
        return [(m.directory, 1 if m.controllers else 2) for m in tops[:1]]
    common = set(chains[0]).intersection(*map(set, chains[1:]))
    return [level for level in chains[0] if level in common]


def busy_seconds(root: Path = ROOT) -> float | None:
    """Return the CPU seconds used on all CPUs since boot: neither idle nor waiting for I/O."""
    match = re.search(r"^cpu +(.*)", cgroup.read_text(root / "proc/stat"), re.M)
    if not match:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(field) for field in (match[1].split() + ["0"] * 8)[:8]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_SECOND


def _meminfo(root: Path) -> dict[str, int]:
    found = re.findall(r"^(\w+): +(\d+) kB", cgroup.read_text(root / "proc/meminfo"), re.M)
    return {name: int(kilobytes) * 1024 for name, kilobytes in found}
