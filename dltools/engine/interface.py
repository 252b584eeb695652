"""What dltools needs of a container engine, and the values that go in and out.

`Engine` is what each must have, and a public API; what some can do besides stands in `parts.py`.
Each engine has a folder beside this file; `docker/` is the first. `Capabilities` say what can be
done with its containers as they are, so that dltools begins nothing that the engine would refuse.
Only its folder knows the words of an engine's API. Where others must keep some of them (in the
journal, in the record of a migration), they are `Fields`, which they hand back unread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dltools.engine import cgroup
from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroup_files import Directory, Usage
from dltools.engine.kernel_reading import ROOT
from dltools.errors import DltoolsError
from dltools.labels import ORIGIN, PREFIX
from dltools.notation.limits import CPU_LIMITS, Limits, written_name


class GoneError(DltoolsError):
    """The container is no longer there."""


class RefusedError(DltoolsError):
    """The engine refused a request; the message is the engine's."""


class UnableError(RefusedError):
    """The engine will never do what was asked."""


Fields = Mapping[str, Any]
"""What only an engine understands; a JSON object."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do, beside showing its containers."""

    limits: frozenset[str] = frozenset(CPU_LIMITS)
    """The names of the limits that it sets."""

    pauses: bool = True
    """Whether it can pause containers."""

    creates: bool = True
    """Whether it creates containers: a move needs both hosts' engines to."""

    keeps: bool = True
    """Whether its limits stay when a container restarts."""

    leases_only: bool = False
    """Whether what is changed must end by itself."""

    why: str = ""
    """Why it cannot do more, and what would let it, in a sentence; "" where nothing would."""

    def missing(self, container: Container | None = None) -> list[str]:
        """Return what cannot be done with one container, or any: limits as plans name them, pause,
        move."""
        limits = self.limits - (container.refuses.limits.keys() if container else set())
        missing = [written_name(name) for name in CPU_LIMITS if name not in limits]
        missing += ["pause"] if (container and container.refuses.pause) or not self.pauses else []
        return missing if self.creates else [*missing, "move"]


ALL_CAPABILITIES = Capabilities()


@dataclass(frozen=True, slots=True)
class Network:
    """How a container is reached."""

    names: tuple[str, ...] = ()
    """Its networks."""

    own_names: tuple[str, ...] = ()
    """Those of them that somebody has made for it and others, where an address means something else
    than elsewhere."""

    is_shared: bool = False
    """Whether it has the network of the host or of another container."""

    addresses: tuple[str, ...] = ()
    """Its own, as seen from its host."""

    exposed: frozenset[int] = frozenset()
    """Ports that it says it serves."""

    published: Mapping[int, str] = field(default_factory=dict)
    """Where its ports are on its host."""

    ports: tuple[int, ...] = ()
    """Those of its own that are published to others."""

    serves_nodes: bool = False
    """Whether its service publishes a port on all nodes."""

    needed: str = ""
    """The network that another host must have for it, "" for none."""


class Mount(NamedTuple):
    """Where a container sees a folder of its host, or a volume."""

    destination: str
    """The path inside the container."""

    volume: str = ""
    """The name of the volume, "" for a folder."""

    is_named: bool = True
    """Whether its configuration names the volume, so that another host can have it."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a container was started with."""

    command: Sequence[str] = ()
    """The words of its command."""

    environ: bytes = b""
    """Its variables, as in a /proc/PID/environ."""

    host_name: str = ""
    """The host name that it sees."""

    user: str = ""
    """Whom its first process runs as, in the engine's words."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container has ended; of one that runs it means nothing."""

    time: datetime | None = None
    """When it last ended, None where it has not, or the engine does not say."""

    exit_code: int | None = None
    """The exit code of its first process, None where the engine does not say."""

    error: str = ""
    """What the engine says has gone wrong."""


@dataclass(frozen=True, slots=True)
class OfService:
    """The service of a container; all is "" where it has none."""

    id: str = ""
    """What the cluster calls the service, "" for none."""

    name: str = ""
    """What people call the service, "" where the container is none of its tasks."""

    slot: str = ""
    """What stays the same when the task moves."""

    is_task: bool = False
    """Whether the container is one of the service's tasks."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """What cannot be done with a container, and why, in sentences."""

    move: tuple[str, ...] = ()
    """Why it cannot move to another host, a sentence for each reason; () where it may."""

    pause: str = ""
    """Why its engine must not pause it, "" if it may."""

    limits: Mapping[str, str] = field(default_factory=dict)
    """By name those that it cannot have, though others of its engine may."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container as its engine describes it."""

    id: str
    """What the engine calls it."""

    name: str
    """What people call it, without a leading slash."""

    image: str = ""
    """The image that it was made from, as its owner named it; "" where there is none."""

    state: str = "running"
    """created, running, paused, restarting, exited or dead."""

    pid: int = 0
    """The number of its first process, 0 where none is known."""

    started: datetime | None = None
    """When it was last started, None where that is unknown."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Its labels, by name."""

    image_id: str = ""
    """The engine's id of the image, "" where there is none."""

    started_text: str = ""
    """When it was last started, in the engine's words: it tells one start from the next."""

    ended: Ending = Ending()
    """How it ended last."""

    program: Program = Program()
    """What it was started with."""

    network: Network = Network()
    """How it is reached."""

    mounts: tuple[Mount, ...] = ()
    """Where it sees folders of its host, and volumes."""

    service: OfService = OfService()
    """The service that it belongs to."""

    refuses: Refusals = Refusals()
    """What cannot be done with it, though its engine can do that with others."""

    has_gpu: bool = False
    """Whether it was given a GPU."""

    files_only: bool = False
    """Whether its limits are in the kernel's files alone, as no engine keeps a record of them, or
    an update by its engine could cut off its GPU."""

    recorded: Limits = field(default_factory=Limits)
    """The limits on the engine's record."""

    limit_fields: Fields = field(default_factory=dict)
    """The same in the engine's words, for the journal."""

    native: Fields = field(default_factory=dict)
    """All that the engine has said."""

    cgroup_path: str = ""
    """The path of its cgroup, where no engine keeps a record of it: all of its limits are in the
    cgroup's files. "" where an engine knows the container, and its id is in the path."""

    @property
    def origin(self) -> str:
        """The id of the first container of its job, or the slot of its service: what stays the same
        when the job moves."""
        return self.service.slot or self.labels.get(ORIGIN) or self.id

    @property
    def dltools_labels(self) -> dict[str, str]:
        """The labels that are meant for this toolkit."""
        return {k: v for k, v in sorted(self.labels.items()) if k.startswith(PREFIX)}

    def holds(self, pid: int | str, root: Path = ROOT) -> bool:
        """Tell whether a local process (its number, or "self") is in it."""
        return cgroup.belongs_to(pid, self.id, root, path=self.cgroup_path)

    def local_cgroup(self, mounted: list[cgroup.Mount], root: Path = ROOT) -> Cgroup | None:
        """Return its cgroup on this machine, None where it is not visible. Without an engine's
        record it may have no process."""
        if self.cgroup_path and not self.pid:
            return cgroup.at_path(self.cgroup_path, mounted)
        if not (self.pid and self.holds(self.pid, root)):
            return None
        return cgroup.of_process(
            self.pid, mounted, root, container_id=self.id, path=self.cgroup_path
        )


@dataclass(frozen=True, slots=True)
class LocatedContainer:
    """A container and its place on this machine."""

    container: Container
    """What its engine says of it."""

    cgroup: Cgroup | None
    """None where it is not visible here."""

    usable_cpus: float
    """How many CPUs containers can use there."""

    usable_cpu_list: str
    """Which these are, such as 0-3."""

    def controller(self, name: str) -> Directory | None:
        """Return a controller's directory, None if it is not visible."""
        return self.cgroup.directory(name) if self.cgroup else None

    @property
    def cgroup_version(self) -> int:
        """The cgroup version that holds the CPU limits, 1 if the cgroup is not visible."""
        directory = self.controller("cpu")
        return directory.version if directory else 1


class Listed(NamedTuple):
    """A container in an engine's list."""

    id: str
    """What the engine calls it."""

    name: str
    """What people call it, "" where it has no name."""

    state: str
    """As `Container.state`."""


class Event(NamedTuple):
    """What happened to a container."""

    container_id: str
    """The engine's id of the container."""

    name: str
    """The name of the container, "" where the engine does not say."""

    action: str
    """start, exit, oom, pause, unpause, update, unhealthy or remove, "" for what changes nothing,
    such as a command that is run in it, else the engine's word."""

    time: datetime
    """When it happened, by the engine's clock."""

    nanos: int | None = None
    """When, by the engine's clock (ns since 1970), None where it does not say."""

    exit_code: int | None = None
    """That of an exit, None for other events, or where the engine does not say."""

    labels: Mapping[str, str] = {}
    """The labels of the container; Docker's event has its own attributes among them."""

    hand: str = ""
    """What somebody does to the container: signal, attach, freeze, enter or leave, which are the
    begin and the end of a command that is run in it; "" for anything else."""

    hand_id: str = ""
    """That of the command."""


LARGEST_BACKLOG = 8 << 20
"""The most bytes of a log that are read at once, or wait in memory for the next call of
`LogFlow.take`."""


class LogFlow(Protocol):
    """A log as it goes on."""

    is_behind: bool = False
    """Whether more came since the last call of `take` than is kept in memory."""

    fault: str = ""
    """Why it has ended, if the engine says so, "" otherwise."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def take(self) -> list[bytes]:
        """Return the entries that have come since the last call, without waiting."""

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""

    def close(self) -> None:
        """Take no more."""


class Requests:
    """What this process has asked of an engine; here of one that tells nobody's changes."""

    @property
    def repeats(self) -> int:
        """How many requests have been made again, as no answer had come: one that is refused then
        may have been carried out before."""
        return 0

    def is_own(self, event: Event) -> bool:
        """Tell whether an event comes of a request that was made here; once for each request."""
        return False


class Engine(Protocol):
    """A connection to one engine. Methods raise `UnavailableError` or `AccessError` if the engine
    does not answer, `GoneError` if it has no such container, and `RefusedError` if it refuses.
    Each method sets a state, so that it can be repeated.

    Each engine derives from this class. It derives from the parts that it has as well, or names
    objects for them.
    """

    id: str
    """What tells this engine from all others, and stays the same when it restarts."""

    host: str
    """The name of its host."""

    is_local: bool
    """Whether it runs on this machine."""

    cpus: int
    """How many its host has."""

    memory: int
    """Bytes of its host."""

    has_gpu: bool = False
    """Whether its containers can be given a GPU."""

    version: str = ""
    """What it calls itself and its version, for people; "" where it does not say."""

    cgroup_driver: str = ""
    """What makes the cgroups of its containers, such as systemd; "" where it does not say."""

    capabilities: Capabilities = Capabilities(frozenset(), pauses=False, creates=False)
    """What it can do now, beside showing its containers."""

    parts: Sequence[object] = ()
    """What it can do beside this, each an object of a type of `parts.py`."""

    requests: Requests = Requests()
    """What this process has asked of it."""

    tells_hands: bool = False
    """Whether its events tell what people do to containers: pauses, signals, commands run there."""

    # What there is

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        """Return the running and paused containers that have all these labels (KEY or KEY=VALUE)
        and a name that one of these expressions matches."""

    def ids(self) -> set[str]:
        """Return the ids of all containers, those that do not run too."""

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name."""

    def usage(self, id_: str) -> Usage | None:
        """Return counters of a container on another machine, None where the engine tells none."""
        return None

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Yield what a container has logged since a time (seconds since 1970), as it comes. Each
        entry begins with the time stamp (RFC 3339) and a blank; one without a line end goes on in
        the next. Of a long log the newest `LARGEST_BACKLOG` bytes may be all, with `RefusedError`
        at the end."""

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> LogFlow:
        """Return a container's log as it comes, until it exits. `is_new_only` leaves out what is
        there already."""

    def events(self, since: float) -> Iterator[Event]:
        """Yield container events from a time on (seconds since 1970), for ever."""

    def past_events(self, since: float, until: float) -> list[Event]:
        """Return the events between two times that the engine still remembers."""
        return []
