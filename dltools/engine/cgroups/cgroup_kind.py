"""What the keeper of some cgroups knows of them, and can do with them: here of nobody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dltools.engine import freezer
from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroups.cgroup_tree import CgroupTree, Process
from dltools.engine.cgroups.plain_logs import outputs_of
from dltools.engine.interface import Capabilities, Container, RefusedError
from dltools.engine.patience import comes_true
from dltools.engine.registry import ON_RECORD

_THAWS_S, _BETWEEN_S = 1.0, 0.01
"""How long a cgroup may take to go on (ours)."""

_FILES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cpus": (("cpu", "cpu.cfs_quota_us"), ("cpu", "cpu.max")),
    "weight": (("cpu", "cpu.shares"), ("cpu", "cpu.weight")),
    "cpuset": (("cpuset", "cpuset.cpus"),),
}
"""For each limit the controller and the file that it needs, on version 1 or on version 2."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What a cgroup is called, and what is known of it beside the kernel's files."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


class CgroupKind:
    """Cgroups that nobody else keeps a record of."""

    name = "cgroup"

    def __init__(self, tree: CgroupTree) -> None:
        self.tree = tree

    def is_owned(self, path: str) -> bool:
        """Tell whether another engine keeps a record of a cgroup."""
        return bool(ON_RECORD.search(path))

    def naming(self, path: str, processes: Sequence[Process]) -> Naming:
        """Return what a cgroup is called: its path, without the first slash."""
        return Naming(path.lstrip("/"))

    def main_process(self, processes: Sequence[Process]) -> Process | None:
        """Return the process that tells what a cgroup runs: the oldest one."""
        return processes[0] if processes else None

    def is_paused(self, path: str, processes: Sequence[Process]) -> bool:
        """Tell whether a container is paused."""
        return self.tree.is_frozen(path)

    def can(self, path: str) -> Capabilities:
        """Return what can be done with one container."""
        group = self.tree.at(path)
        limits = frozenset(name for name in _FILES if group and _has_file(group, name))
        pauses = self.tree.freezer(path) is not None
        return Capabilities(limits, pauses=pauses, creates=False)

    def can_at_all(self) -> Capabilities:
        """Return what can be done on this machine; of a container less may be true."""
        controllers = self.tree.controllers()
        needed = {name: files[0][0] for name, files in _FILES.items()}
        limits = frozenset(name for name, controller in needed.items() if controller in controllers)
        missing = sorted({*needed.values(), "freezer"} - controllers)
        why = f"cgroups here have no controller {' and '.join(missing)}" if missing else ""
        return Capabilities(limits, pauses="freezer" in controllers, creates=False, why=why)

    def log_files(self, container: Container) -> Sequence[str]:
        """Return the paths of the files that are a container's log now."""
        processes = self.tree.processes(container.cgroup_path)
        return outputs_of((process.pid for process in processes), self.tree.root)

    def as_told(self, container: Container) -> Container:
        """Return a container with what its keeper tells of it."""
        return container

    def pause(self, path: str) -> None:
        """Freeze the processes of a cgroup."""
        freezer.freeze(self.tree.sole_freezer(path))

    def unpause(self, path: str) -> None:
        """Thaw the processes of a cgroup."""
        if not self.tree.is_frozen(path):
            raise RefusedError(f"the cgroup {path} is not frozen")
        freezer.thaw(self.tree.sole_freezer(path))
        if not comes_true(lambda: not self.tree.is_frozen(path), _THAWS_S, _BETWEEN_S):
            raise RefusedError(f"the cgroup {path} stays frozen: one above it is")


def lacks(path: str, name: str) -> str:
    """Return why a cgroup cannot hold a limit."""
    return f"the cgroup {path} cannot hold {name}: it has no controller {_FILES[name][0][0]}"


def _has_file(group: Cgroup, limit: str) -> bool:
    pairs = ((group.directory(controller), file) for controller, file in _FILES[limit])
    return any(place is not None and (place.path / file).exists() for place, file in pairs)
