"""Cgroups as an engine: each one that matches a pattern and has processes is a container.

Nobody else keeps a record of such a container: its limits are in the kernel's files alone. It ends
when it has no more processes; one that gets new ones has started again. One that was removed and
made again at the same path is another container.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dltools.engine import freezer, looked_events
from dltools.engine.address import Address
from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroups.cgroup_tree import CgroupTree, Process
from dltools.engine.cgroups.plain_logs import PlainFlow, PlainLog, outputs_of
from dltools.engine.interface import (
    Capabilities,
    Container,
    Event,
    GoneError,
    Listed,
    LocatedContainer,
    LogFlow,
    Network,
    Pauses,
    RefusedError,
)
from dltools.engine.kernel_files import ROOT, read_text
from dltools.engine.limits import limit_files
from dltools.engine.limits.limit_files import WritesLimits
from dltools.engine.patience import comes_true
from dltools.errors import ConfigError
from dltools.labels import has_labels
from dltools.notation.limits import CPU_LIMITS

_THAWS_S, _BETWEEN_S = 1.0, 0.01
"""How long a cgroup may take to go on (ours)."""

_MOST_LOGS = 256

_FILES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cpus": (("cpu", "cpu.cfs_quota_us"), ("cpu", "cpu.max")),
    "weight": (("cpu", "cpu.shares"), ("cpu", "cpu.weight")),
    "cpuset": (("cpuset", "cpuset.cpus"),),
}
"""For each limit the controller and the file that it needs, on version 1 or on version 2."""

_OWNED = re.compile(
    r"^/(docker|libpod_parent|slurm(_[^/]*)?|kubepods(\.slice)?)(/|$)|slurmstepd\.scope(/|$)"
    r"|/libpod-|[/-][0-9a-f]{64}(\.scope)?(/|$)"
)
"""Cgroups that an engine keeps a record of, which would not know of changes to their files."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What a cgroup is called, and what is known of it beside the kernel's files."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


def check(address: Address) -> None:
    """Raise `ConfigError` if an address is not one of cgroups."""
    for pattern in _patterns(address):
        parts = pattern.split("/")
        if not pattern.startswith("/") or not parts[-1] or {".", ".."} & set(parts):
            raise ConfigError(
                f"{address.said_by} {address.url!r}: no pattern of cgroups; write "
                "cgroup:/PATH[,/PATH], where a PATH is below the root of cgroups and may have *"
            )


def open_engine(address: Address, *_: object) -> CgroupEngine:
    """Look at the cgroups of an address. They are always there: nothing is waited for."""
    check(address)
    return CgroupEngine(_patterns(address), logs=address.settings.get("logs"))


def _patterns(address: Address) -> list[str]:
    return address.url.partition(":")[2].split(",")


class CgroupEngine(WritesLimits, Pauses):
    """Cgroups at paths that match patterns, such as /jobs/*."""

    is_local = True
    kind = "cgroup"

    def __init__(
        self,
        patterns: Sequence[str],
        root: Path = ROOT,
        logs: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`logs` are the files with the logs of containers, by name: those that their processes
        write otherwise. Raises `ConfigError` for a pattern of cgroups that another engine keeps."""
        self._tree = CgroupTree(root)
        self._patterns = tuple(patterns)
        self._given_logs = logs or {}
        self._logs: dict[str, PlainLog] = {}
        machine = read_text(root / "etc/machine-id").strip() or socket.gethostname()
        digest = hashlib.sha256(f"dltools {machine}".encode()).hexdigest()
        # The same for all patterns: what was changed under one is undone under another.
        self.id = f"{self.kind}-{digest[:40]}"
        self.host = socket.gethostname()
        self.cpus = os.cpu_count() or 1
        self.memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.has_gpu = (root / "dev/nvidiactl").exists()
        for pattern in self._patterns:
            if self.is_owned(pattern):
                raise ConfigError(
                    f"{self.kind}:{pattern}: these are another engine's; name its address, such as "
                    "unix:///var/run/docker.sock, slurm: or cri:///PATH"
                )
        self.capabilities = self.can_at_all()

    # What differs between the kinds of cgroups

    def is_owned(self, path: str) -> bool:
        """Tell whether another engine keeps a record of a cgroup."""
        return bool(_OWNED.search(path))

    def naming(self, path: str, processes: Sequence[Process]) -> Naming:
        """Return what a cgroup is called: its path, without the first slash."""
        return Naming(path.lstrip("/"))

    def main_process(self, processes: Sequence[Process]) -> Process | None:
        """Return the process that tells what a cgroup runs: the oldest one."""
        return processes[0] if processes else None

    def is_paused(self, path: str, processes: Sequence[Process]) -> bool:
        """Tell whether a container is paused."""
        return self._tree.is_frozen(path)

    def can(self, path: str) -> Capabilities:
        """Return what can be done with one container."""
        group = self._tree.at(path)
        limits = frozenset(name for name in _FILES if group and _has_file(group, name))
        pauses = self._tree.freezer(path) is not None
        return Capabilities(limits, pauses=pauses, creates=False)

    def can_at_all(self) -> Capabilities:
        """Return what can be done on this machine; of a container less may be true."""
        known = self._tree.controllers()
        needed = {name: files[0][0] for name, files in _FILES.items()}
        limits = frozenset(name for name, controller in needed.items() if controller in known)
        missing = sorted({*needed.values(), "freezer"} - known)
        why = f"cgroups here have no controller {' and '.join(missing)}" if missing else ""
        return Capabilities(limits, pauses="freezer" in known, creates=False, why=why)

    def log_files(self, container: Container) -> Sequence[str]:
        """Return the paths of the files that are a container's log now."""
        if given := self._given_logs.get(container.name):
            return given
        processes = self._tree.processes(container.cgroup_path)
        return outputs_of((one.pid for one in processes), self._tree.root)

    # What there is

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        """Return the running and paused containers that have all these labels (KEY or KEY=VALUE)
        and a name that one of these expressions matches."""
        found = []
        for id_, path in self._ids():
            processes = self._tree.processes(path)
            state = self._state(path, processes)
            if state == "exited":
                continue
            naming = self.naming(path, processes)
            is_named = not names or any(re.search(one, naming.name) for one in names)
            if is_named and has_labels(naming.labels, labels):
                found.append(Listed(id_, naming.name, state))
        return found

    def ids(self) -> set[str]:
        """Return the ids of all containers, those that have no processes too."""
        return {id_ for id_, _ in self._ids()}

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name: also one that no pattern matches, as another run
        may have changed it."""
        path = self._path_of(id_)
        processes = self._tree.processes(path)
        identity = self._tree.identity(path)
        if identity is None:
            raise GoneError(f"the cgroup {path} no longer exists")
        main, naming, can = (
            self.main_process(processes),
            self.naming(path, processes),
            self.can(path),
        )
        began = processes[0].began if processes else None
        proc = self._tree.root / "proc" / str(main.pid if main else 0)
        return Container(
            id=identity,
            name=naming.name,
            state=self._state(path, processes),
            pid=main.pid if main else 0,
            started=None if began is None else self._tree.time_of(began),
            labels=naming.labels,
            started_text="" if began is None else str(began),
            command=read_text(proc / "cmdline").rstrip("\0").split("\0"),
            environ=_environ(proc),
            host_name=self.host,
            network=Network(is_shared=True),
            pause_refusal="" if can.pauses else "its cgroup has no freezer",
            unsettable={name: _lacks(path, name) for name in CPU_LIMITS if name not in can.limits},
            limit_fields=limit_files.read_files(self._located(path)),
            cgroup_path=path,
            files_only=True,
        )

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Yield what a container has logged since a time (seconds since 1970), as it comes."""
        yield from self._log(container).all(since)

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> LogFlow:
        """Return a container's log as it comes, from where `logs` has ended, until it exits."""
        log = self._log(container)
        if is_new_only:
            log.skip()
        path = container.cgroup_path
        return PlainFlow(log, lambda: not self._tree.processes(path))

    def events(self, since: float) -> Iterator[Event]:
        """Yield container events from a time on (seconds since 1970), for ever."""
        return looked_events.watch(self, since)

    # Turns

    def pause(self, id_: str) -> None:
        """Freeze a container's processes."""
        freezer.freeze(self._tree.sole_freezer(self._path_of(id_)))

    def unpause(self, id_: str) -> None:
        """Thaw a container's processes."""
        path = self._path_of(id_)
        if not self._tree.is_frozen(path):
            raise RefusedError(f"the cgroup {path} is not frozen")
        freezer.thaw(self._tree.sole_freezer(path))
        if not comes_true(lambda: not self._tree.is_frozen(path), _THAWS_S, _BETWEEN_S):
            raise RefusedError(f"the cgroup {path} stays frozen: one above it is")

    # Inside

    def _paths(self) -> Iterator[str]:
        return (path for path in self._tree.paths(self._patterns) if not self.is_owned(path))

    def _ids(self) -> Iterator[tuple[str, str]]:
        for path in self._paths():
            if id_ := self._tree.identity(path):
                yield id_, path

    def _state(self, path: str, processes: Sequence[Process]) -> str:
        if self.is_paused(path, processes):
            return "paused"
        return "running" if processes else "exited"

    def _path_of(self, id_: str) -> str:
        for identity, path in self._ids():
            if identity == id_ or self.naming(path, self._tree.processes(path)).name == id_:
                return path
        if re.fullmatch(r"[0-9a-f]{64}", id_):
            for path in self._tree.all_paths():
                if self._tree.identity(path) == id_:
                    return path
        raise GoneError(f"there is no cgroup {id_!r}")

    def _located(self, path: str) -> LocatedContainer:
        return LocatedContainer(
            Container("", "", cgroup_path=path), self._tree.at(path), float(self.cpus), ""
        )

    def _log(self, container: Container) -> PlainLog:
        if container.id not in self._logs:
            if len(self._logs) >= _MOST_LOGS:
                for id_ in self._logs.keys() - self.ids():
                    self._logs.pop(id_).close()
            self._logs[container.id] = PlainLog(lambda: self.log_files(container))
        return self._logs[container.id]


def _lacks(path: str, name: str) -> str:
    """Return why a cgroup cannot hold a limit."""
    return f"the cgroup {path} cannot hold {name}: it has no controller {_FILES[name][0][0]}"


def _has_file(group: Cgroup, limit: str) -> bool:
    found = ((group.directory(controller), file) for controller, file in _FILES[limit])
    return any(one is not None and (one.path / file).exists() for one, file in found)


def _environ(proc: Path) -> bytes:
    try:
        return (proc / "environ").read_bytes()
    except OSError:
        return b""
