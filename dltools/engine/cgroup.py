"""A cgroup, versions 1 and 2: where that of a process is, its processes and its counters.

The directories are found through /proc/PID/cgroup and the cgroup mounts of /proc/self/mountinfo;
no path is guessed, so that every driver (cgroupfs, systemd) and every --cgroup-parent works. Each
controller is looked up by itself, for hosts that mix both versions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dltools.engine.cgroup_files import CpuUsage, Directory, MemoryUsage, Transfer, Usage
from dltools.engine.kernel_reading import ROOT, HeldFiles, pressure_seconds, read_int, read_text
from dltools.notation.limits import Limits

_EVERY_CGROUP_HAS = "cgroup.procs"
_THREADS = {1: "tasks", 2: "cgroup.threads"}
HOLDERS = ("cpu", "cpuset", "freezer", "memory", "pids", "cpuacct", "blkio")
"""The controllers that tell whether a cgroup is there, and its processes: the first that it has.
The hierarchies of version 1 are asked in this order."""

_LINKS_OF_A_LEAF = 2
"""Links of a directory that has no other in it."""

_MOST_BELOW = 1024
"""Cgroups below one that are looked at (ours)."""


class Cgroup:
    """The cgroup of one process: the directory of each controller."""

    def __init__(
        self,
        directories: Mapping[str, Path | None],
        unified: Path | None,
        *,
        has_those_below: bool = False,
    ) -> None:
        """`directories` maps version 1 controllers, those that are elsewhere to None; `unified` is
        version 2's directory. `has_those_below`: processes of the cgroups below count as its
        own."""
        self._v1 = directories
        self.unified = unified
        self.files = HeldFiles()
        self.has_those_below = has_those_below

    def directory(self, controller: str) -> Directory | None:
        """Return a controller's directory, None if it is not mounted, or elsewhere."""
        if controller in self._v1:
            path = self._v1[controller]
            return Directory(path, 1) if path is not None else None
        return Directory(self.unified, 2) if self.unified is not None else None

    @property
    def exists(self) -> bool:
        """Whether the cgroup is still there."""
        directory = self.holder
        return directory is not None and directory.path.is_dir()

    @property
    def holder(self) -> Directory | None:
        """The directory that tells whether it is there, and its processes; None where none is
        visible."""
        for name in HOLDERS:
            if (directory := self.directory(name)) is not None:
                return directory
        return Directory(self.unified, 2) if self.unified is not None else None

    @property
    def processes(self) -> list[int]:
        """The numbers of its processes, without those that are invisible here."""
        return sorted(self._numbers(lambda _: _EVERY_CGROUP_HAS))

    @property
    def threads(self) -> list[int]:
        """The numbers of its threads, without those that are invisible here."""
        return list(self._numbers(_THREADS.__getitem__))

    def _numbers(self, file_of: Callable[[int], str]) -> dict[int, None]:
        """Return the numbers in the file that a version has, each once."""
        directory = self.holder
        if directory is None:
            return {}
        name = file_of(directory.version)
        if not self.has_those_below:
            text = read_text(f"{directory.path}/{name}")
        else:
            text = "".join(read_text(f"{path}/{name}") for path in with_those_below(directory.path))
        return dict.fromkeys(int(word) for word in text.split() if word.isdigit() and word != "0")

    @property
    def parent(self) -> str | None:
        """The path of the cgroup among whose children its CPU weight counts, "/" for the top; None
        where the controller is not visible."""
        directory = self.directory("cpu")
        if directory is None:
            return None
        *between, top = [directory, *self.ancestors("cpu")]
        return f"/{between[1].path.relative_to(top.path)}" if len(between) > 1 else "/"

    def ancestors(self, controller: str) -> Iterator[Directory]:
        """Yield the directories above a controller's, nearest first, the mount's own included."""
        directory = self.directory(controller)
        if directory is None:
            return
        path = directory.path
        while (path.parent / _EVERY_CGROUP_HAS).exists():
            path = path.parent
            yield Directory(path, directory.version)

    def usage(self) -> Usage:
        """Read its counters; what cannot be read is None."""
        read = self.files.read
        memory, io = self.directory("memory"), self.directory("blkio")
        return Usage(
            cpu=self.cpu(),
            memory=memory.memory(read) if memory else MemoryUsage(),
            io=io.io(read) if io else Transfer(),
            threads=self._thread_count(),
            pressure=self._pressure(),
        )

    def cpu(self) -> CpuUsage:
        """Read its counters of CPU."""
        read = self.files.read
        cpu, cpuacct = map(self.directory, ("cpu", "cpuacct"))
        usage = cpu.cpu(read) if cpu else CpuUsage()
        if cpuacct and cpuacct.version == 1:
            nanos = read_int(f"{cpuacct.path}/cpuacct.usage", read)
            usage = usage._replace(seconds=None if nanos is None else nanos / 1e9)
        if self.has_those_below and usage.seconds is None and self.unified is not None:
            # Version 2 counts without a controller, also where version 1 has them all.
            usage = usage._replace(seconds=Directory(self.unified, 2).cpu(read).seconds)
        return usage

    def limits(self) -> Limits:
        """Read its limits on CPUs; what cannot be read is left out."""
        read = self.files.read
        cpu, cpuset = map(self.directory, ("cpu", "cpuset"))
        limits: Limits = {}
        if cpu and (weight := cpu.weight(read)) is not None:
            limits |= {"cpus": cpu.quota(read), "weight": weight}
        if cpuset and (listed := cpuset.cpuset(read)):
            limits["cpuset"] = listed
        return limits

    def _thread_count(self) -> int | None:
        """Return how many threads there are, counted where the controller pids is elsewhere."""
        pids = self.directory("pids")
        counted = read_int(f"{pids.path}/pids.current", self.files.read) if pids else None
        return counted if counted is not None or not self.has_those_below else len(self.threads)

    def _pressure(self) -> dict[str, float]:
        """Return pressure in seconds; version 1 hosts keep it in the unified hierarchy too."""
        totals = {
            name: pressure_seconds(f"{self.unified}/{name}.pressure", self.files.read)
            for name in ("cpu", "memory", "io")
            if self.unified is not None
        }
        return {name: total for name, total in totals.items() if total is not None}


@dataclass(frozen=True, slots=True)
class Mount:
    """A cgroup mount."""

    directory: Path
    """Where it is."""

    root: str
    """The cgroup that it shows there."""

    controllers: frozenset[str]
    """Those of version 1 whose cgroups it shows, none for version 2."""

    own: str = ""
    """The cgroup of this process below the mount, where the mount shows more than its namespace
    does: the kernel tells all paths from there. "" elsewhere."""

    def shows(self, number: str, controllers: frozenset[str]) -> bool:
        """Tell whether the mount shows a hierarchy: its number (0 is version 2) and controllers."""
        if number == "0" and not controllers:
            return not self.controllers
        return bool(controllers & self.controllers)

    def below(self, path: str) -> Path | None:
        """Return the directory of a cgroup's path, None if the mount does not show it."""
        if self.own:
            return self.directory / os.path.normpath(f"{self.own}/{path}").lstrip("/")
        top = self.root.rstrip("/")
        if path != top and not path.startswith(f"{top}/"):
            return None
        return self.directory / path[len(top) :].lstrip("/")


def mounts(root: Path = ROOT) -> list[Mount]:
    """Return the cgroup mounts that this process sees."""
    points = []
    for line in read_text(f"{root}/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, options = left.split(), right.split()
        if len(fields) < 5 or len(options) < 3 or options[0] not in ("cgroup", "cgroup2"):
            continue
        names = frozenset(options[2].split(",")) if options[0] == "cgroup" else frozenset()
        directory, shown = root / _unescape(fields[4]).lstrip("/"), _unescape(fields[3])
        own = _own_path(directory) if ".." in shown.split("/") else ""
        points.append(Mount(directory, shown, names, own))
    return points


def _own_path(top: Path) -> str:
    """Return the path of this process's cgroup below a mount, "" if it is not there.

    A pod has a cgroup namespace of its own on version 2. From there the cgroup that the node's
    mount shows is called `/../../..`, and which names lead back to the pod only the mount tells.
    """
    own = str(os.getpid())
    for folder, _, files in os.walk(top):
        if _EVERY_CGROUP_HAS in files and own in read_text(f"{folder}/{_EVERY_CGROUP_HAS}").split():
            return f"/{Path(folder).relative_to(top)}"
    return ""


def of_process(
    pid: int, mounted: list[Mount], root: Path = ROOT, *, container_id: str = "", path: str = ""
) -> Cgroup | None:
    """Return the cgroup of a process, None if the process or every mount is invisible.

    For a container's process, only cgroups whose path holds the container's id, or which are at its
    path or below, count: the kernel moves an ending process to the root, on version 1 one
    controller at a time. Given a path, it is the cgroup at that path, with those below; given an
    id, that whose own name holds it, as docker-ID.scope of a process in docker-ID.scope/init.scope.
    """
    v1: dict[str, Path | None] = {}
    unified: Path | None = None
    is_above = bool(path)
    for line in read_text(f"{root}/proc/{pid}/cgroup").splitlines():
        number, controllers, present = [*line.split(":", 2), "", ""][:3]
        is_inside = _is_inside(present, container_id, path)
        own = path or _own_part(present, container_id)
        is_above |= is_inside and own != present
        names = frozenset(filter(None, controllers.split(",")))
        for mount in mounted:
            directory = mount.below(own) if mount.shows(number, names) else None
            if directory is None:
                continue
            if names:
                v1 = {**dict.fromkeys(names, directory if is_inside else None), **v1}
            elif unified is None and is_inside:
                unified = directory
    if not (any(v1.values()) or unified):
        return None
    return Cgroup(v1, unified, has_those_below=is_above)


def at_path(path: str, mounted: list[Mount]) -> Cgroup | None:
    """Return the cgroup at a path, with those below, None if no mount shows it."""
    v1: dict[str, Path | None] = {}
    unified: Path | None = None
    for mount in mounted:
        directory = mount.below(path)
        if directory is not None and not directory.is_dir():
            directory = None
        if mount.controllers:
            v1 = {**dict.fromkeys(mount.controllers, directory), **v1}
        else:
            unified = unified or directory
    return Cgroup(v1, unified, has_those_below=True) if any(v1.values()) or unified else None


def belongs_to(pid: int | str, container_id: str, root: Path = ROOT, *, path: str = "") -> bool:
    """Tell whether a local process (its number, or "self") is in a container: its cgroup's path
    holds the container's id, or is the path or below it.

    A process number from an engine on another machine means another process here.
    """
    lines = read_text(f"{root}/proc/{pid}/cgroup").splitlines()
    return any(_is_inside(line.split(":", 2)[-1], container_id, path) for line in lines)


def _is_inside(present: str, container_id: str, path: str) -> bool:
    """Tell whether a cgroup's path is one of a container: job_1 is not in job_12."""
    if path:
        return present == path or present.startswith(f"{path}/")
    return _holds(present, container_id)


def _own_part(present: str, container_id: str) -> str:
    """Return the path of a container's own cgroup, of one at or below it: as far as the first name
    that holds the id. Whoever runs in a container may make cgroups below its own.

    But crun makes the cgroup `container` in the scope of a container of Podman, and sets limits
    there alone.
    """
    names = present.split("/")
    own = next((at for at, name in enumerate(names, 1) if _holds(name, container_id)), len(names))
    own += names[own - 1].startswith("libpod-") and names[own : own + 1] == ["container"]
    return "/".join(names[:own]) if container_id else present


def is_alone_in_scope(pid: int, container_id: str, root: Path = ROOT) -> bool:
    """Tell whether the cgroup of a container's process is the only one in the container's own
    scope: there a weight competes with nobody's."""
    rows = [line.split(":", 2) for line in read_text(f"{root}/proc/{pid}/cgroup").splitlines()]
    version1 = [fields for fields in rows if "cpu" in fields[1].split(",")]
    names = [_own_part(fields[-1], container_id).split("/") for fields in version1 or rows]
    return bool(container_id) and any(_holds(name[-2], container_id) for name in names if name[1:])


def _holds(text: str, container_id: str) -> bool:
    """Tell whether a text holds an id, as a word of its own."""
    if container_id not in text:
        return False
    return not container_id or bool(re.search(rf"(?<!\w){re.escape(container_id)}(?!\w)", text))


def with_those_below(path: Path | str) -> Iterator[str]:
    """Yield the directory of a cgroup and those of the cgroups below it, a thousand at most."""
    waiting, count = [str(path)], 0
    while waiting and count < _MOST_BELOW:
        folder = waiting.pop()
        yield folder
        count += 1
        try:
            if os.stat(folder).st_nlink == _LINKS_OF_A_LEAF:  # noqa: PTH116
                continue
            with os.scandir(folder) as entries:
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:  # it has just gone
            continue


def _unescape(text: str) -> str:
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)
