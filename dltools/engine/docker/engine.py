"""A Docker engine: its containers, logs and events, as requests to its API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dltools.bounded_reading import LineSplitter
from dltools.engine.address import Address
from dltools.engine.cgroup_files import Usage
from dltools.engine.docker.addresses import check, default_address, socket_of
from dltools.engine.docker.answers import container_of, event_of, listed_of, usage_of
from dltools.engine.docker.changes import Changes, DockerLimits, path_of
from dltools.engine.docker.http import Transport, dial_socket, understood
from dltools.engine.docker.moves import LIST, DockerMoves
from dltools.engine.docker.streams import asked_log, followed_log, log_file
from dltools.engine.docker.swarm import Swarm
from dltools.engine.gpu_access import access_by_specification
from dltools.engine.interface import (
    ALL_CAPABILITIES,
    Capabilities,
    Container,
    Engine,
    Event,
    GoneError,
    Listed,
    LogFlow,
)
from dltools.engine.kernel_reading import ROOT, stat_of
from dltools.engine.kernel_scales import default_shares
from dltools.engine.log_reading import FollowedFile, read_log
from dltools.notation.json_values import table_from


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


class DockerEngine(Engine):
    """A connection to one Docker engine, or to one with the same API."""

    tells_hands = True

    _settled_s = 0.0
    """How long a container's last lines may take to its log's file after its exit is known."""

    _states: Sequence[str] = ()
    """The states by which lists are filtered; (): the engine lists what runs or is paused."""

    def __init__(self, transport: Transport | None = None) -> None:
        """Use a transport, or find the engine as `connect` does."""
        self._transport = transport or connect()
        self.requests: Changes = Changes(self._transport)
        self.is_local = self._transport.is_local
        with understood():
            info: Mapping[str, Any] = self._transport.json("GET", "/info")
            self.capabilities = _capabilities(info)
            self.id: str = info.get("ID") or ""
            self.host: str = info.get("Name") or ""
            self.version: str = f"Docker {info.get('ServerVersion') or ''}".strip()
            self.cgroup_driver: str = info.get("CgroupDriver") or ""
            self.cpus: int = info.get("NCPU") or 0
            self.memory: int = info.get("MemTotal") or 0
            self.has_gpu = _has_gpu(info)
            runc = (info.get("RuncCommit") or {}).get("ID") or ""
            shares = default_shares(str(info.get("CgroupVersion")), runc)
            swarm = info.get("Swarm") or {}
            self._limits = DockerLimits(self.requests, self.cpus, shares)
            self.parts: Sequence[object] = (
                self._limits,
                self.requests,
                DockerMoves(self._transport, self.requests, swarm.get("NodeID") or ""),
                *([Swarm(self._transport)] if swarm.get("ControlAvailable") else []),
            )

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        """Return the running and paused containers that have all these labels (KEY or KEY=VALUE)
        and a name that one of these expressions matches."""
        filters = {"label": list(labels), "name": list(names), "status": list(self._states)}
        given = {key: values for key, values in filters.items() if values}
        params = {"filters": json.dumps(given)} if given else {}
        with understood():
            return [listed_of(raw) for raw in self._transport.json("GET", LIST, params)]

    def ids(self) -> set[str]:
        """Return the ids of all containers, those that do not run too."""
        with understood():
            return {str(raw["Id"]) for raw in self._transport.json("GET", LIST, {"all": 1})}

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name."""
        raw = self._transport.json("GET", f"{path_of(id_)}/json")
        if not isinstance(raw, dict) or "State" not in raw:  # the name is that of another path
            raise GoneError(f"{id_!r} is not the name of a container")
        with understood():
            container = container_of(raw)
            memory = {"Memory": container.recorded.get("memory")}
            recorded = self._limits.recorded({**container.limit_fields, **memory})
            files_only = container.files_only
            if files_only and self.is_local and container.pid:
                spec = specification(container.id, container.pid)
                files_only = access_by_specification(spec, is_asked=True).files_only
            return replace(container, recorded=recorded, files_only=files_only)

    def usage(self, id_: str) -> Usage | None:
        """Return a container's counters, None where the engine tells none."""
        params = {"stream": "false", "one-shot": "true"}
        stats = self._transport.json("GET", f"{path_of(id_)}/stats", params)
        with understood():
            return usage_of(stats) if isinstance(stats, dict) and stats else None

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
            has_ended = lambda: not container.holds(container.pid)  # noqa: E731
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


def specification(container_id: str, pid: int, root: Path = ROOT) -> Mapping[str, Any]:
    """Return the specification with which the runtime here started a container, given its first
    process: it is in the folder that the parent, the shim, works in. {} where it cannot be found
    or read."""
    words = stat_of(pid, root)
    folder = root / f"proc/{words[1] if words else 0}/cwd"
    try:
        if folder.readlink().name != container_id:
            return {}
        return table_from((folder / "config.json").read_bytes())
    except OSError:
        return {}


def _has_gpu(info: Mapping[str, Any]) -> bool:
    devices = info.get("DiscoveredDevices") or []
    return "nvidia" in (info.get("Runtimes") or {}) or any(
        str(device.get("ID")).startswith("nvidia.com/gpu") for device in devices
    )


def _capabilities(info: Mapping[str, Any]) -> Capabilities:
    """Return what an engine can do. A rootless one on cgroup version 1 makes no cgroups: it accepts
    each update with a warning, and changes nothing."""
    if info.get("CgroupDriver") != "none":
        return ALL_CAPABILITIES
    said = [str(warning).removeprefix("WARNING: ") for warning in info.get("Warnings") or ()]
    why = next((warning for warning in said if "rootless" in warning.lower()), _NO_CGROUPS)
    return Capabilities(frozenset(), pauses=False, creates=False, why=why)


_NO_CGROUPS = "this engine runs without cgroups, so that its containers have no limits."


def _events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a stream of JSON objects, one a line."""
    splitter = LineSplitter()
    with understood():
        for chunk in chunks:
            yield from (event_of(json.loads(line)) for line in splitter.feed(chunk) if line.strip())
        yield from (event_of(json.loads(line)) for line in splitter.end() if line.strip())
