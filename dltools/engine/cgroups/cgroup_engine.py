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
from pathlib import Path

from dltools.engine import looked_events
from dltools.engine.address import Address
from dltools.engine.cgroups.cgroup_kind import CgroupKind, lacks
from dltools.engine.cgroups.cgroup_tree import CgroupTree, Process
from dltools.engine.cgroups.plain_logs import PlainFlow, PlainLogs
from dltools.engine.interface import (
    Container,
    Engine,
    Event,
    GoneError,
    Listed,
    LocatedContainer,
    LogFlow,
    Network,
    Program,
    Refusals,
)
from dltools.engine.kernel_reading import ROOT, read_text
from dltools.engine.limits import limit_writing
from dltools.engine.limits.limit_writing import WritesLimits
from dltools.engine.parts import Pauses
from dltools.errors import ConfigError
from dltools.labels import has_labels
from dltools.notation.limits import CPU_LIMITS


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


class CgroupEngine(Engine, WritesLimits, Pauses):
    """Cgroups at paths that match patterns, such as /jobs/*."""

    is_local = True

    def __init__(
        self,
        patterns: Sequence[str],
        root: Path = ROOT,
        logs: Mapping[str, Sequence[str]] | None = None,
        kind: type[CgroupKind] = CgroupKind,
    ) -> None:
        """`logs` are the files with the logs of containers, by name: those that their processes
        write otherwise. Raises `ConfigError` for a pattern of cgroups that another engine keeps."""
        self._tree = CgroupTree(root)
        self._kind = kind(self._tree)
        self._patterns = tuple(patterns)
        given = logs or {}
        self._logs = PlainLogs(
            lambda container: given.get(container.name) or self._kind.log_files(container), self.ids
        )
        machine = read_text(root / "etc/machine-id").strip() or socket.gethostname()
        digest = hashlib.sha256(f"dltools {machine}".encode()).hexdigest()
        # The same for all patterns: what was changed under one is undone under another.
        self.id = f"{kind.name}-{digest[:40]}"
        self.host = socket.gethostname()
        self.cpus = os.cpu_count() or 1
        self.memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.has_gpu = (root / "dev/nvidiactl").exists()
        for pattern in self._patterns:
            if self._kind.is_owned(pattern):
                raise ConfigError(
                    f"{kind.name}:{pattern}: these are another engine's; name its address, such as "
                    "unix:///var/run/docker.sock, slurm: or cri:///PATH"
                )
        self.capabilities = self._kind.can_at_all()

    # What there is

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        """Return the running and paused containers that have all these labels (KEY or KEY=VALUE)
        and a name that one of these expressions matches."""
        listeds = []
        for id_, path in self._ids():
            processes = self._tree.processes(path)
            state = self._state(path, processes)
            if state == "exited":
                continue
            naming = self._kind.naming(path, processes)
            is_named = not names or any(re.search(name, naming.name) for name in names)
            if is_named and has_labels(naming.labels, labels):
                listeds.append(Listed(id_, naming.name, state))
        return listeds

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
        main = self._kind.main_process(processes)
        naming, can = self._kind.naming(path, processes), self._kind.can(path)
        began = processes[0].began if processes else None
        pid = main.pid if main else 0
        command = read_text(f"{self._tree.root}/proc/{pid}/cmdline").rstrip("\0").split("\0")
        container = Container(
            id=identity,
            name=naming.name,
            state=self._state(path, processes),
            pid=pid,
            started=None if began is None else self._tree.time_of(began),
            labels=naming.labels,
            started_text="" if began is None else str(began),
            program=Program(command, self._tree.environ(pid), self.host),
            network=Network(is_shared=True),
            refuses=Refusals(
                pause="" if can.pauses else "its cgroup has no freezer",
                limits={name: lacks(path, name) for name in CPU_LIMITS if name not in can.limits},
            ),
            limit_fields=limit_writing.read_files(
                LocatedContainer(
                    Container("", "", cgroup_path=path), self._tree.at(path), float(self.cpus), ""
                )
            ),
            cgroup_path=path,
            files_only=True,
        )
        return self._kind.as_told(container)

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Yield what a container has logged since a time (seconds since 1970), as it comes."""
        yield from self._logs.of(container).all(since)

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> LogFlow:
        """Return a container's log as it comes, from where `logs` has ended, until it exits."""
        log = self._logs.of(container)
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
        self._kind.pause(self._path_of(id_))

    def unpause(self, id_: str) -> None:
        """Thaw a container's processes."""
        self._kind.unpause(self._path_of(id_))

    # Inside

    def _ids(self) -> Iterator[tuple[str, str]]:
        for path in self._tree.paths(self._patterns):
            if not self._kind.is_owned(path) and (id_ := self._tree.identity(path)):
                yield id_, path

    def _state(self, path: str, processes: Sequence[Process]) -> str:
        if self._kind.is_paused(path, processes):
            return "paused"
        return "running" if processes else "exited"

    def _path_of(self, id_: str) -> str:
        for identity, path in self._ids():
            if identity == id_ or self._kind.naming(path, self._tree.processes(path)).name == id_:
                return path
        if re.fullmatch(r"[0-9a-f]{64}", id_):
            for path in self._tree.all_paths():
                if self._tree.identity(path) == id_:
                    return path
        raise GoneError(f"there is no cgroup {id_!r}")
