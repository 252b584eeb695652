"""Where a process's cgroup is, versions 1 and 2.

The directories are found through /proc/PID/cgroup and the cgroup mounts of /proc/self/mountinfo;
no path is guessed, so that every driver (cgroupfs, systemd) and every --cgroup-parent works. Each
controller is looked up by itself, for hosts that mix both versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dltools.engine.cgroup_files import FILES, CgroupFiles
from dltools.engine.kernel_files import ROOT, HeldFiles, Read, read_text

_EVERY_CGROUP_HAS = "cgroup.procs"
_THREADS = {1: "tasks", 2: "cgroup.threads"}


class Directory(NamedTuple):
    """The directory of one controller of a cgroup, and the version of its files."""

    path: Path
    version: int

    @property
    def reader(self) -> CgroupFiles:
        """What reads the files of this version."""
        return FILES[self.version]

    def quota(self, read: Read = read_text) -> float | None:
        """Return the CPU quota in cores, None for no quota."""
        return self.reader.quota(self.path, read)

    def weight(self, read: Read = read_text) -> float | None:
        """Return the CPU weight in Docker's shares: 1024 is the default of both versions."""
        return self.reader.weight(self.path, read)

    def cpuset(self, read: Read = read_text) -> str | None:
        """Return the list of CPUs that the cgroup may really use, None if it is unknown."""
        return self.reader.cpuset(self.path, read)


class Cgroup:
    """The cgroup of one process: the directory of each controller."""

    def __init__(self, directories: Mapping[str, Path | None], unified: Path | None) -> None:
        """`directories` maps version 1 controllers, those that are elsewhere to None; `unified` is
        version 2's directory."""
        self._v1 = directories
        self.unified = unified
        self.files = HeldFiles()

    def directory(self, controller: str) -> Directory | None:
        """Return a controller's directory, None if it is not mounted, or elsewhere."""
        if controller in self._v1:
            path = self._v1[controller]
            return Directory(path, 1) if path is not None else None
        return Directory(self.unified, 2) if self.unified is not None else None

    @property
    def exists(self) -> bool:
        """Whether the cgroup is still there."""
        found = self.directory("cpu")
        return found is not None and found.path.is_dir()

    @property
    def processes(self) -> list[int]:
        """The numbers of its processes, without those that are invisible here."""
        found = self.directory("cpu")
        text = read_text(found.path / _EVERY_CGROUP_HAS) if found else ""
        return sorted({int(line) for line in text.split() if line.isdigit()} - {0})

    @property
    def threads(self) -> list[int]:
        """The numbers of its threads, without those that are invisible here."""
        found = self.directory("cpu")
        text = read_text(found.path / _THREADS[found.version]) if found else ""
        return [int(line) for line in text.split() if line != "0"]

    @property
    def parent(self) -> str | None:
        """The path of the cgroup among whose children its CPU weight counts, "/" for the top; None
        where the controller is not visible."""
        found = self.directory("cpu")
        if found is None:
            return None
        *between, top = [found, *self.ancestors("cpu")]
        return f"/{between[1].path.relative_to(top.path)}" if len(between) > 1 else "/"

    def ancestors(self, controller: str) -> Iterator[Directory]:
        """Yield the directories above a controller's, nearest first, the mount's own included."""
        found = self.directory(controller)
        if found is None:
            return
        path = found.path
        while (path.parent / _EVERY_CGROUP_HAS).exists():
            path = path.parent
            yield Directory(path, found.version)


@dataclass(frozen=True, slots=True)
class Mount:
    """A cgroup mount: its directory, which cgroup it shows there, and its controllers.

    `controllers` is empty for version 2.
    """

    directory: Path
    root: str
    controllers: frozenset[str]

    def shows(self, number: str, controllers: frozenset[str]) -> bool:
        """Tell whether the mount shows a hierarchy: its number (0 is version 2) and controllers."""
        if number == "0" and not controllers:
            return not self.controllers
        return bool(controllers & self.controllers)

    def below(self, path: str) -> Path | None:
        """Return the directory of a cgroup's path, None if the mount does not show it."""
        top = self.root.rstrip("/")
        if path != top and not path.startswith(f"{top}/"):
            return None
        return self.directory / path[len(top) :].lstrip("/")


def mounts(root: Path = ROOT) -> list[Mount]:
    """Return the cgroup mounts that this process sees."""
    found = []
    for line in read_text(f"{root}/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, options = left.split(), right.split()
        if len(fields) < 5 or len(options) < 3 or options[0] not in ("cgroup", "cgroup2"):
            continue
        names = frozenset(options[2].split(",")) if options[0] == "cgroup" else frozenset()
        directory = root / _unescape(fields[4]).lstrip("/")
        found.append(Mount(directory, _unescape(fields[3]), names))
    return found


def of_process(
    pid: int, mounted: list[Mount], root: Path = ROOT, *, container_id: str = ""
) -> Cgroup | None:
    """Return the cgroup of a process, None if the process or every mount is invisible.

    For a container's process, only cgroups whose path holds the container's id count: the kernel
    moves an ending process to the root, on version 1 one controller at a time.
    """
    v1: dict[str, Path | None] = {}
    unified: Path | None = None
    for line in read_text(f"{root}/proc/{pid}/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        is_inside = container_id in path
        names = frozenset(filter(None, controllers.split(",")))
        for mount in mounted:
            directory = mount.below(path) if mount.shows(number, names) else None
            if directory is None:
                continue
            if names:
                v1 = {**dict.fromkeys(names, directory if is_inside else None), **v1}
            elif unified is None and is_inside:
                unified = directory
    return Cgroup(v1, unified) if any(v1.values()) or unified else None


def belongs_to(pid: int | str, container_id: str, root: Path = ROOT) -> bool:
    """Tell whether a local process (its number, or "self") is in a container: its cgroup's path
    holds the container's id.

    A process number from an engine on another machine means another process here.
    """
    return container_id in read_text(f"{root}/proc/{pid}/cgroup")


def _unescape(text: str) -> str:
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)
