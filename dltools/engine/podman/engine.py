"""A Podman engine, 4.3 or later: what differs from Docker behind the same API.

Podman's own API sets limits: Docker's request for it is missing in 4.3, and in 5.4 takes the
container's restart policy away. 4.3 sets them in the kernel alone; a restart brings back what the
container was created with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dltools.engine.address import Address
from dltools.engine.cgroup import is_alone_in_scope
from dltools.engine.docker.addresses import check
from dltools.engine.docker.changes import Changes, DockerLimits, path_of
from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.docker.http import Transport
from dltools.engine.docker.moves import DockerMoves
from dltools.engine.interface import Capabilities, Container, Engine, Event, Fields, RefusedError
from dltools.engine.kernel_reading import read_text
from dltools.engine.limits.limit_updates import FIELDS
from dltools.engine.log_reading import SETTLED_S
from dltools.engine.parts import LimitChange
from dltools.engine.patience import Patience
from dltools.errors import UnavailableError
from dltools.notation.limits import CPU_LIMITS

__all__ = ["PodmanEngine", "check", "open_engine"]


def open_engine(
    address: Address, patience_s: float, report_waiting: Callable[[UnavailableError], None]
) -> Engine:
    """Connect to Podman, which tells its name with each answer, or else to Docker, whose addresses
    it has."""
    transport = connect(address)
    transport.patience = Patience(patience_s, report_waiting)
    if transport.server.startswith("Libpod/"):
        return PodmanEngine(transport)
    return DockerEngine(transport)


_NAMES = {"CpuPeriod": "period", "CpuQuota": "quota", "CpuShares": "shares", "CpusetCpus": "cpus"}
"""Podman's own names of Docker's fields. It derives NanoCpus from the quota."""

_KEEPING = (5, 4)
"""The version from which limits are on Podman's record, so that a restart keeps them, where its
records are in SQLite."""

_FORGETFUL = (5, 1)
"""The version from which, up to 5.3, an update takes a container's other limits from the record:
memory, processes (podman#24610)."""


class PodmanEngine(DockerEngine):
    """A connection to one Podman."""

    tells_hands = False  # it tells of pauses late, and of some from before: whose, is not known

    _limits: PodmanLimits
    _settled_s = SETTLED_S

    _states: Sequence[str] = ("running", "paused")

    def __init__(self, transport: Transport) -> None:
        """Ask what it is. Raises as the engine does."""
        super().__init__(transport)
        self.requests = PodmanChanges(transport, self)
        info = self._transport.json("GET", "/libpod/info")
        store = (info.get("store") or {}).get("graphRoot") or ""
        machine = read_text("/etc/machine-id").strip() if self.is_local else ""
        self.id = f"podman:{machine or self.host}:{store}"
        self.version = f"Podman {self.version.removeprefix('Docker').strip()}".strip()
        self.capabilities = _capabilities(
            info.get("host") or {}, _version(transport.server), is_local=self.is_local
        )
        self._limits = PodmanLimits(transport, self._limits, keeps=self.capabilities.keeps)
        self.parts = (self._limits, self.requests, DockerMoves(transport, self.requests))

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name."""
        container = super().inspect(id_)
        host_config: Mapping[str, Any] = container.native.get("HostConfig") or {}
        fields = {name: host_config.get(name) or 0 for name in FIELDS if name in _NAMES}
        fields |= self._limits.unshown(container)
        memory = {"Memory": host_config.get("Memory")}
        recorded = self._limits.recorded({**fields, **memory})
        container = replace(container, limit_fields=fields, recorded=recorded)
        if self.is_local and container.pid and is_alone_in_scope(container.pid, container.id):
            return replace(container, refuses=replace(container.refuses, limits={"weight": _ALONE}))
        return container

    def events(self, since: float) -> Iterator[Event]:
        """Yield container events from a time on (seconds since 1970), for ever. Podman tells some
        from before too, and an old exit is not to be taken for a new one."""
        begin = since * 1e9
        return (
            event for event in super().events(since) if event.nanos is None or event.nanos >= begin
        )

    def past_events(self, since: float, until: float) -> list[Event]:
        """Return none: of past events Podman gives a part, and each time another one."""
        del since, until
        return []


class PodmanLimits(DockerLimits):
    """Sets limits by Podman's own API."""

    leaves_record = False  # it takes an owner's quota beside any other

    def __init__(self, transport: Transport, docker: DockerLimits, *, keeps: bool) -> None:
        """`docker` says what Podman tells as Docker does; `keeps` as in `Capabilities`."""
        super().__init__(docker.changes, docker.cpus, docker.default_shares)
        self._transport = transport
        self._keeps = keeps
        self._unshown: dict[str, tuple[str, Fields]] = {}

    def unshown(self, container: Container) -> Fields:
        """Return the limits of a container that does not run which Podman does not show yet."""
        started, fields = self._unshown.get(container.id, ("", {}))
        return fields if not container.pid and started == container.started_text else {}

    def update(self, id_: str, fields: Fields) -> list[str]:
        """Set limits, under Docker's names. Podman warns of nothing."""
        limits = {_NAMES[name]: value for name, value in fields.items()}
        self._transport.json("POST", f"/libpod{path_of(id_)}/update", body={"cpu": limits})
        return []

    def _update_until(self, change: LimitChange, updates: Iterable[Fields]) -> Fields:
        """Set limits, and remember those of a container that does not run: they hold from its next
        start on, and until then Podman shows those of its last one. Where no record keeps limits
        such a container has its own already."""
        container = change.located.container
        if not container.pid and not self._keeps:
            return {}
        made = super()._update_until(change, updates)
        if not container.pid:
            self._unshown[container.id] = container.started_text, made
        return made


class PodmanChanges(Changes):
    """Requests that change containers of one Podman."""

    def __init__(self, transport: Transport, engine: Engine) -> None:
        super().__init__(transport)
        self._engine = engine

    def pause(self, id_: str) -> None:
        """Freeze a container's processes, unless they are frozen."""
        try:
            super().pause(id_)
        except RefusedError:  # Podman refuses with 500 to pause twice
            if self._engine.inspect(id_).state != "paused":
                raise


_ALONE = "crun sets its weight in a scope of its own, where it has no competitors"

_NO_MOVES = "dl-apply moves containers only between Docker engines"


def _capabilities(
    host: Mapping[str, Any], version: tuple[int, ...], *, is_local: bool
) -> Capabilities:
    """Return what Podman of a version can do, given what it says of its host."""
    keeps = version >= _KEEPING and host.get("databaseBackend", "sqlite") == "sqlite"
    why = ""
    if _FORGETFUL <= version < _KEEPING:
        why = "Podman 5.1 to 5.3 forgets a container's other limits in an update: 5.4 is needed"
    elif not keeps and not is_local:
        why = "this Podman does not say what is in force: run dl-apply on its host"
    if why:
        return Capabilities(limits=frozenset(), creates=False, keeps=False, why=why)
    is_v2 = host.get("cgroupVersion") == "v2"
    runtime = (host.get("ociRuntime") or {}).get("name"), host.get("cgroupManager")
    hidden = {"weight"} if is_v2 and not is_local and runtime == ("crun", "systemd") else set()
    if not (host.get("security") or {}).get("rootless"):
        why = f"{_ALONE}; {_NO_MOVES}" if hidden else _NO_MOVES
        return Capabilities(frozenset(CPU_LIMITS) - hidden, creates=False, keeps=keeps, why=why)
    controllers = host.get("cgroupControllers") or [] if is_v2 else []
    limits = {"cpu": ("cpus", "weight"), "cpuset": ("cpuset",)}
    return Capabilities(
        limits=frozenset(name for key in limits if key in controllers for name in limits[key])
        - hidden,
        pauses=is_v2,
        creates=False,
        keeps=keeps,
        why="this Podman is rootless, and needs cgroup version 2 with the controllers cpu and "
        "cpuset delegated to its user (systemd: Delegate=cpu cpuset)",
    )


def _version(server: str) -> tuple[int, ...]:
    """Return the version in the name of a server, such as Libpod/5.4.2 (linux)."""
    numbers = server.partition("/")[2].partition(" ")[0].split(".")
    return tuple(int(number) for number in numbers[:2] if number.isdigit())
