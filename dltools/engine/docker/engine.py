"""A Docker engine: containers, limits, logs and events, as requests to its API."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dltools.bounded_reading import LineSplitter
from dltools.engine.address import Address
from dltools.engine.cgroup import belongs_to
from dltools.engine.cgroup_files import Usage
from dltools.engine.docker.addresses import check, default_address, socket_of
from dltools.engine.docker.answers import container_of, event_of, listed_of, usage_of
from dltools.engine.docker.configuration import NO_RESTART, look_body, move_of
from dltools.engine.docker.streams import asked_log, followed_log, log_file
from dltools.engine.docker.swarm import SERVICE, Swarm
from dltools.engine.docker.transport import Transport, dial_socket, quoted, understood
from dltools.engine.gpu_access import access_by_specification, specification
from dltools.engine.interface import (
    ALL_CAPABILITIES,
    Capabilities,
    Container,
    Delivers,
    Event,
    Fields,
    GoneError,
    Listed,
    LocatedContainer,
    LogFlow,
    Move,
    Moves,
    Pauses,
    RefusedError,
)
from dltools.engine.limits.limit_fields import (
    equivalent_original,
    recorded_limits,
    restoring_updates,
    setting_updates,
)
from dltools.engine.limits.limit_files import WritesLimits
from dltools.engine.log_files import FollowedFile, read_log
from dltools.engine.scales import default_shares
from dltools.engine.services import ServiceManager
from dltools.notation.limits import Limits


def connect(address: Address | None = None) -> Transport:
    """Return a connection to the engine at an address, by default to the one that the docker
    command would use.

    Raises `UnavailableError`, `AccessError`, or `ConfigError` if the address is not one of an
    engine.
    """
    address = address or default_address()
    check(address)
    if (path := socket_of(address)) is not None:
        return Transport(f"unix://{path}", dial_socket(path), is_local=True)
    from dltools.engine.docker.remote import Tunnel, dial_tcp

    dial = Tunnel(address.url).dial if address.scheme == "ssh" else dial_tcp(address)
    return Transport(address.url, dial)


_FREEZES_AGAIN_S = (0.02, 0.1, 0.5)
"""After what times a pause is tried again (ours)."""

_LOST_RACE = ("unable to freeze", "while freezing", "failed: exit status")
"""What runc says where processes start faster than it can freeze a cgroup of version 1, and what
Podman says then."""


class DockerEngine(WritesLimits, Pauses, Moves, Delivers):
    """A connection to one Docker engine, or to one with the same API."""

    tells_hands = True
    leaves_quotas = True

    _product = "Docker"

    _settled_s = 0.0
    """How long a container's last lines may take to its log's file after its exit is known."""

    _states: Sequence[str] = ()
    """The states by which lists are filtered; (): the engine lists what runs or is paused."""

    def __init__(self, transport: Transport | None = None) -> None:
        """Use a transport, or find the engine as `connect` does."""
        self._transport = transport or connect()
        self._asked: Counter[tuple[str, str]] = Counter()  # whose events are yet to come
        self.is_local = self._transport.is_local
        with understood():
            self._learn(self._transport.json("GET", "/info"))

    def _learn(self, info: Mapping[str, Any]) -> None:
        """Learn what the engine says of itself."""
        self.capabilities = _capabilities(info)
        self.id: str = info.get("ID") or ""
        self.host: str = info.get("Name") or ""
        self.version: str = f"{self._product} {info.get('ServerVersion') or ''}".strip()
        self.cgroup_driver: str = info.get("CgroupDriver") or ""
        runc = (info.get("RuncCommit") or {}).get("ID") or ""
        self._default_shares = default_shares(str(info.get("CgroupVersion")), runc)
        swarm = info.get("Swarm") or {}
        self.node_id: str = swarm.get("NodeID") or ""
        self.services: ServiceManager | None = (
            Swarm(self._transport) if swarm.get("ControlAvailable") else None
        )
        self.cpus: int = info.get("NCPU") or 0
        self.memory: int = info.get("MemTotal") or 0
        devices = info.get("DiscoveredDevices") or []
        self.has_gpu: bool = "nvidia" in (info.get("Runtimes") or {}) or any(
            str(device.get("ID")).startswith("nvidia.com/gpu") for device in devices
        )

    @property
    def repeats(self) -> int:
        """How many requests have been made again, as no answer had come."""
        return self._transport.patience.repeats

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        """Return the running and paused containers that have all these labels (KEY or KEY=VALUE)
        and a name that one of these expressions matches."""
        filters = {"label": list(labels), "name": list(names), "status": list(self._states)}
        given = {key: values for key, values in filters.items() if values}
        params = {"filters": json.dumps(given)} if given else {}
        with understood():
            return [listed_of(one) for one in self._transport.json("GET", _LIST, params)]

    def ids(self) -> set[str]:
        """Return the ids of all containers, those that do not run too."""
        with understood():
            return {str(one["Id"]) for one in self._transport.json("GET", _LIST, {"all": 1})}

    def has_task_of(self, service_id: str) -> bool:
        """Tell whether a task of a Swarm service runs here."""
        return bool(self.containers([f"{SERVICE}={service_id}"]))

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name."""
        raw = self._transport.json("GET", f"{self._path(id_)}/json")
        if not isinstance(raw, dict) or "State" not in raw:  # the name is that of another path
            raise GoneError(f"{id_!r} is not the name of a container")
        with understood():
            found = container_of(raw)
            recorded = self.recorded({**found.limit_fields, "Memory": found.recorded.get("memory")})
            files_only = found.files_only
            if files_only and self.is_local and found.pid:
                spec = specification(found.id, found.pid)
                files_only = access_by_specification(spec, is_asked=True).files_only
            return replace(found, recorded=recorded, files_only=files_only)

    def _path(self, id_: str) -> str:
        """Return the path of requests on a container."""
        return f"/containers/{quoted(id_)}"

    def update_limits(
        self,
        located: LocatedContainer,
        wanted: Limits,
        is_in_force: Callable[[], bool],
        original: Fields | None,
    ) -> None:
        """Set CPU limits, and the quota of `original` fields. Of several ways to do it the next one
        is taken until `is_in_force`."""
        if original is not None:
            self._restore(located, original, wanted, is_in_force)
            return
        self._update_until(located, setting_updates(located, wanted, self.cpus), is_in_force)

    def _restore(
        self,
        located: LocatedContainer,
        original: Fields,
        wanted: Limits,
        is_in_force: Callable[[], bool],
    ) -> None:
        equivalent = equivalent_original(located, original, self.cpus)
        try:
            updates = restoring_updates(located, original, wanted, self._default_shares)
            self._update_until(located, updates, is_in_force)
        except RefusedError:
            if not equivalent:
                raise
            equivalent |= {"CpuShares": original.get("CpuShares")}
            updates = restoring_updates(located, equivalent, wanted, self._default_shares)
            self._update_until(located, updates, is_in_force)

    def _update_until(
        self, located: LocatedContainer, updates: Iterable[Fields], is_in_force: Callable[[], bool]
    ) -> Fields:
        """Make updates until one is in force, and return it."""
        *others, last = updates
        if not last:
            return last
        for fields in others:
            self.update(located.container.id, fields)
            if is_in_force():
                return fields
        warnings = self.update(located.container.id, last)
        if warnings and located.container.pid and not is_in_force():
            raise RefusedError("; ".join(warnings))
        return last

    def recorded(self, limit_fields: Fields) -> Limits:
        """Return the limits for which the fields of a journal's entry stand."""
        return recorded_limits(limit_fields, self._default_shares)

    def update(self, id_: str, fields: Fields) -> list[str]:
        """Set fields of a container, under Docker's own names, and return the engine's warnings."""
        said = self._change(id_, "update", dict(fields))
        return list(map(str, (said or {}).get("Warnings") or ())) if isinstance(said, dict) else []

    def pause(self, id_: str) -> None:
        """Freeze a container's processes; again where runc has lost a race with new ones."""
        for wait_s in _FREEZES_AGAIN_S:
            try:
                self._change(id_, "pause")
            except RefusedError as error:
                if not any(sign in str(error) for sign in _LOST_RACE):
                    raise
                time.sleep(wait_s)
            else:
                return
        self._change(id_, "pause")

    def unpause(self, id_: str) -> None:
        """Thaw a container's processes."""
        self._change(id_, "unpause")

    def _change(self, id_: str, action: str, body: Any = None) -> Any:
        """Have a container changed, which an event of the same name will tell of."""
        repeats = self.repeats
        self._asked[id_, action] += 1
        try:
            return self._transport.json("POST", f"{self._path(id_)}/{action}", body=body)
        except (GoneError, RefusedError):
            if self.repeats == repeats:  # else it may have been carried out before
                self._asked[id_, action] -= 1
            raise

    def is_own(self, event: Event) -> bool:
        """Tell whether an event comes of a request that was made here; once for each request."""
        key = event.container_id, event.action
        self._asked[key] -= 1
        is_own = self._asked[key] >= 0
        if self._asked[key] <= 0:
            del self._asked[key]
        return is_own

    def create(self, name: str, body: Mapping[str, Any]) -> str:
        """Create a container, which does not run yet, and return its id."""
        answer = self._transport.json("POST", "/containers/create", {"name": name}, dict(body))
        return str(answer["Id"])

    def start(self, id_: str) -> None:
        """Start a container, unless it runs."""
        self._transport.json("POST", f"{self._path(id_)}/start")

    def signal(self, id_: str, name: str) -> None:
        """Send a signal, such as SIGTERM, to a container's first process."""
        self._transport.json("POST", f"{self._path(id_)}/kill", {"signal": name})

    def remove(self, id_: str) -> None:
        """Remove a container that does not run."""
        self._transport.json("DELETE", self._path(id_))

    def describe_move(self, container: Container, original: Fields, image: str) -> Move:
        """Return what another engine must know to run a container. `original` are the limits that
        dl-apply has changed, as they were before; `image` is what the other engine calls the
        image."""
        return move_of(container, original, image)

    def describe_look(self, container: Container, image: str) -> Fields:
        """Return what another engine must know to show the volumes of a container."""
        return look_body(container, image)

    def set_restart(self, id_: str, policy: Fields | None) -> None:
        """Set when the engine starts a container again by itself; None: never."""
        self.update(id_, {"RestartPolicy": NO_RESTART if policy is None else policy})

    def image_id(self, name: str) -> str | None:
        """Return the id of an image, None where it is absent."""
        found = self._known(f"/images/{quoted(name)}/json")
        return found and str(found["Id"])

    def has_volume(self, name: str) -> bool:
        """Tell whether there is a volume of a name."""
        return self._known(f"/volumes/{quoted(name)}") is not None

    def has_network(self, name: str) -> bool:
        """Tell whether there is a network of a name."""
        return self._known(f"/networks/{quoted(name)}") is not None

    def _known(self, path: str) -> Any:
        try:
            return self._transport.json("GET", path)
        except GoneError:
            return None

    def usage(self, id_: str) -> Usage | None:
        """Return a container's counters, None where the engine tells none."""
        params = {"stream": "false", "one-shot": "true"}
        found = self._transport.json("GET", f"{self._path(id_)}/stats", params)
        with understood():
            return usage_of(found) if isinstance(found, dict) and found else None

    def archive(self, id_: str, path: str) -> Iterator[bytes]:
        """Return a file or folder of a container, running or not, as the chunks of a tar stream.

        Raises `GoneError` also where the container has no such path.
        """
        return self._transport.chunks(f"{self._path(id_)}/archive", {"path": path})

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Yield what a container has logged since a time (seconds since the epoch), as it comes.

        Each entry begins with the engine's time stamp and a blank. An entry without a line end goes
        on in the next one: the engine cuts entries at 16 KiB. Of a long log the newest part comes,
        then `RefusedError`.
        """
        path = log_file(container) if self.is_local else None
        return read_log(path, since) if path else asked_log(self._transport, container, since)

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> LogFlow:
        """Return a container's log as it comes, until it exits. `is_new_only` leaves out what is
        there already. Of what is there since a time the newest `FOLLOWED_LINES` come."""
        if path := log_file(container) if self.is_local else None:
            pid, id_ = container.pid, container.id
            has_ended = lambda: not belongs_to(pid, id_)  # noqa: E731
            return FollowedFile(
                path, since, has_ended, is_new_only=is_new_only, settled_s=self._settled_s
            )
        return followed_log(self._transport, container, since, is_new_only=is_new_only)

    def events(self, since: float) -> Iterator[Event]:
        """Yield container events from a time on (seconds since 1970), for ever."""
        params = {"since": f"{since:.9f}", "filters": _CONTAINERS}
        yield from _events(self._transport.chunks("/events", params, None))

    def past_events(self, since: float, until: float) -> list[Event]:
        """Return the events between two times that the engine still remembers."""
        params = {"since": f"{since:.9f}", "until": f"{until:.9f}", "filters": _CONTAINERS}
        return list(_events(self._transport.chunks("/events", params)))


_CONTAINERS = json.dumps({"type": ["container"]})


def _capabilities(info: Mapping[str, Any]) -> Capabilities:
    """Return what an engine can do. A rootless one on cgroup version 1 makes no cgroups: it accepts
    each update with a warning, and changes nothing."""
    if info.get("CgroupDriver") != "none":
        return ALL_CAPABILITIES
    said = [str(one).removeprefix("WARNING: ") for one in info.get("Warnings") or ()]
    why = next((one for one in said if "rootless" in one.lower()), _NO_CGROUPS)
    return Capabilities(frozenset(), pauses=False, creates=False, why=why)


_NO_CGROUPS = "this engine runs without cgroups, so that its containers have no limits."


def _events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a stream of JSON objects, one a line."""
    splitter = LineSplitter()
    with understood():
        for chunk in chunks:
            yield from (event_of(json.loads(line)) for line in splitter.feed(chunk) if line.strip())
        yield from (event_of(json.loads(line)) for line in splitter.end() if line.strip())


_LIST = "/containers/json"
