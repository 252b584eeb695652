"""The cgroups of this machine by their paths: which there are, whose they are, and their freezers.

A path, such as /jobs/a, means the same cgroup in each hierarchy of version 1, though not each
hierarchy needs to have it, and in the one of version 2. Tests give another `root` than /.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import translate
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from dltools.engine import freezer
from dltools.engine.cgroup import HOLDERS, Cgroup, Mount, at_path, mounts, with_those_below
from dltools.engine.cgroup_files import Directory
from dltools.engine.interface import RefusedError
from dltools.engine.kernel_reading import ROOT, read_flat, read_text

_MOST_PATHS = 10_000
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """A process: its number, name, the letter of its state, and when it began (clock ticks since
    the machine's start)."""

    pid: int
    name: str
    state: str
    began: int


class CgroupTree:
    """The cgroups of one machine."""

    def __init__(self, root: Path = ROOT) -> None:
        """Read where cgroups are mounted."""
        self.root = root
        points = mounts(root)
        # Hierarchies without a controller, as name=systemd is, hold no limits and tell no counters.
        useful = [mount for mount in points if not _is_named(mount)]
        self.mounts = sorted(useful, key=lambda mount: _rank(mount.controllers))
        self._boot = read_text(root / "proc/sys/kernel/random/boot_id").strip()
        self._booted = read_flat(root / "proc/stat").get("btime", 0)

    def paths(self, patterns: Iterable[str]) -> Iterator[str]:
        """Yield the paths of the cgroups that match a pattern in any hierarchy, in order."""
        paths: set[str] = set()
        for pattern in patterns:
            for mount in self.mounts:
                top = mount.root.rstrip("/")
                if pattern.startswith(f"{top}/"):
                    below = _matching(str(mount.directory), pattern[len(top) :].strip("/"))
                    paths.update(f"{top}/{path}" for path in islice(below, _MOST_PATHS))
        yield from sorted(paths)

    def all_paths(self) -> Iterator[str]:
        """Yield the paths of all cgroups; one that several hierarchies have comes more than
        once."""
        for mount in self.mounts:
            for folder, _, _ in os.walk(mount.directory):
                below = os.path.relpath(folder, mount.directory)
                if below != ".":
                    yield f"{mount.root.rstrip('/')}/{below}"

    def controllers(self) -> set[str]:
        """Return the controllers that cgroups of this machine can have. Each of version 2 has a
        freezer."""
        controllers: set[str] = set()
        for mount in self.mounts:
            names = read_text(mount.directory / "cgroup.controllers").split()
            controllers |= mount.controllers or {*names, "freezer"}
        return controllers

    def at(self, path: str) -> Cgroup | None:
        """Return the cgroup at a path, None if there is none."""
        return at_path(path, self.mounts)

    def identity(self, path: str) -> str | None:
        """Return what tells a cgroup from all others of this boot and of earlier ones, one that was
        made again at the same path too; None if there is none. It has 64 hexadecimal digits."""
        for mount in self.mounts:
            if (directory := _place(mount, path)) is None:
                continue
            with suppress(OSError):
                number = os.stat(directory).st_ino  # noqa: PTH116  # the kernel gives none twice
                hierarchy = ",".join(sorted(mount.controllers))
                words = f"{self._boot} {hierarchy} {number}"
                return hashlib.sha256(words.encode()).hexdigest()
        return None

    def processes(self, path: str) -> list[Process]:
        """Return the processes of a cgroup and of those below, the oldest first. Version 1: of the
        first hierarchy in which it has any."""
        for mount in self.mounts:
            directory = _place(mount, path)
            pids = _pids(directory) if directory is not None else ()
            seen = (self.process(pid) for pid in pids)
            if processes := [process for process in seen if process is not None]:
                return sorted(processes, key=lambda process: (process.began, process.pid))
        return []

    def process(self, pid: int) -> Process | None:
        """Return one process, None if it is not there."""
        head, _, rest = read_text(f"{self.root}/proc/{pid}/stat").rpartition(")")
        words = rest.split()
        if len(words) < 20 or words[0] in "ZX":
            return None
        return Process(pid, head.partition("(")[2], words[0], int(words[19]))

    def environ(self, pid: int) -> bytes:
        """Return the variables of a process, as the kernel has them; b"" where they are hidden."""
        with suppress(OSError):
            return (self.root / f"proc/{pid}/environ").read_bytes()
        return b""

    def time_of(self, ticks: int) -> datetime:
        """Return the time of a number of clock ticks since the machine's start."""
        return datetime.fromtimestamp(self._booted + ticks / _TICKS, UTC)

    # The freezer

    def freezer(self, path: str) -> Directory | None:
        """Return the directory with the freezer of a cgroup, None where it has none."""
        for mount in self.mounts:
            version = 1 if "freezer" in mount.controllers else 0 if mount.controllers else 2
            directory = _place(mount, path) if version else None
            if directory and os.path.exists(f"{directory}/{freezer.FILES[version][0]}"):  # noqa: PTH110
                return Directory(Path(directory), version)
        return None

    def is_frozen(self, path: str) -> bool:
        """Tell whether a cgroup is frozen, or is to be; by a cgroup above too."""
        directory = self.freezer(path)
        if directory is None or freezer.is_frozen(directory):
            return directory is not None
        return read_flat(directory.path / "cgroup.events").get("frozen") == 1

    def sole_freezer(self, path: str) -> Directory:
        """Return the directory with the freezer of a cgroup. Raises `RefusedError` where it has
        none, and where some of its processes are outside."""
        directory = self.freezer(path)
        if directory is None:
            raise RefusedError(f"the cgroup {path} has no freezer")
        if {process.pid for process in self.processes(path)} - _pids(str(directory.path)):
            raise RefusedError(f"processes of the cgroup {path} are not in its freezer")
        return directory


def _pids(directory: str) -> set[int]:
    """Return the processes of one directory and of those below."""
    texts = (read_text(f"{folder}/cgroup.procs") for folder in with_those_below(directory))
    return {int(word) for text in texts for word in text.split() if word.isdigit()} - {0}


def _rank(controllers: frozenset[str]) -> int:
    """Return the place of a hierarchy: that with the controller cpu is asked first."""
    ranks = [number for number, name in enumerate(HOLDERS) if name in controllers]
    return min(ranks, default=len(HOLDERS))


def _is_named(mount: Mount) -> bool:
    return bool(mount.controllers) and not mount.controllers & {*HOLDERS, "devices"}


def _place(mount: Mount, path: str) -> str | None:
    """Return the directory of a cgroup's path, None if the mount does not show it. The text alone:
    paths are looked at hundreds of times a second."""
    top = mount.root.rstrip("/")
    if not path.startswith(f"{top}/"):
        return None
    return f"{mount.directory}{path[len(top) :]}"


def _matching(directory: str, pattern: str) -> Iterator[str]:
    """Yield the directories below one that match a pattern, as paths from there."""
    first, _, rest = pattern.partition("/")
    if not any(character in first for character in "*?["):
        names = [first] if os.path.isdir(f"{directory}/{first}") else []  # noqa: PTH112
    else:
        fits = re.compile(translate(first)).match
        try:
            with os.scandir(directory) as entries:
                names = [entry.name for entry in entries if fits(entry.name) and entry.is_dir()]
        except OSError:
            names = []
    for name in names:
        if rest:
            yield from (f"{name}/{path}" for path in _matching(f"{directory}/{name}", rest))
        else:
            yield name
