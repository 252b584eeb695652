"""The requests that dltools makes to a Docker engine: containers, settings, logs, events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from dltools.engine.connect import connect
from dltools.engine.log_entries import EntrySplitter
from dltools.engine.services import SERVICE, Swarm
from dltools.engine.transport import Flow, GoneError, Params, RefusedError, Transport
from dltools.inputs import LineSplitter
from dltools.labels import ORIGIN, PREFIX
from dltools.notation.times import parse_time

__all__ = ["SWARM_TASK", "Container", "Engine", "Flow", "GoneError", "RefusedError", "engine_time"]


SWARM_TASK = "com.docker.swarm.task.id"
"""The label of a container that is a task of a Swarm service."""

_SERVICE_NAME = "com.docker.swarm.service.name"

_INGRESS = "ingress"
"""The network of services that publish a port on all nodes of a Swarm."""

_USUAL_NETWORKS = ("bridge", "host", "none", _INGRESS)
"""The networks that every engine has, or every Swarm."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container as the engine describes it; `raw` is the whole inspection."""

    id: str
    name: str
    image: str
    state: str
    pid: int
    started: datetime | None
    tty: bool
    labels: Mapping[str, str]
    host_config: Mapping[str, Any]
    raw: Mapping[str, Any]

    @property
    def origin(self) -> str:
        """The id of the first container of its job, or the slot of its Swarm service: what stays
        the same when the job moves."""
        if service := self.labels.get(SERVICE):
            slot = self.name.split(".")[-2:-1]
            return ".".join([service, *slot])
        return self.labels.get(ORIGIN) or self.id

    @property
    def service(self) -> str:
        """The name of the Swarm service of which it is a task, "" for none."""
        return self.labels.get(_SERVICE_NAME, "") if SWARM_TASK in self.labels else ""

    @property
    def started_text(self) -> str:
        """When it was last started, in the engine's words: it tells one start from the next."""
        return str(self.raw.get("State", {}).get("StartedAt") or "")

    @property
    def command(self) -> list[str]:
        """The words of the command that it was started with."""
        return [str(self.raw.get("Path") or ""), *map(str, self.raw.get("Args") or ())]

    @property
    def environ(self) -> bytes:
        """The variables that it was started with, as in a /proc/PID/environ."""
        given = (self.raw.get("Config") or {}).get("Env") or ()
        return "\0".join(map(str, given)).encode(errors="replace")

    @property
    def host_name(self) -> str:
        """Its own host name."""
        return str((self.raw.get("Config") or {}).get("Hostname") or "")

    @property
    def shares_network(self) -> bool:
        """Whether it has the network of the host, or of another container."""
        mode = str(self.host_config.get("NetworkMode") or "")
        return mode == "host" or mode.startswith("container:")

    @property
    def own_networks(self) -> list[str]:
        """The names of the networks that somebody has made for it and others: an address means
        something else in each."""
        return sorted(name for name in self._networks if name not in _USUAL_NETWORKS)

    @property
    def has_service_port(self) -> bool:
        """Whether the Swarm service of which it is a task publishes a port on all nodes."""
        return bool(self.service) and _INGRESS in self._networks

    @property
    def _networks(self) -> list[str]:
        settings = self.raw.get("NetworkSettings") or {}
        return [str(name) for name in settings.get("Networks") or ()]

    @property
    def ports(self) -> list[int]:
        """The ports of its own that are published to the network."""
        bound = self.host_config.get("PortBindings") or {}
        shown = (self.raw.get("NetworkSettings") or {}).get("Ports") or {}
        keys = [*bound, *(key for key, places in shown.items() if places)]
        numbers = {key.partition("/")[0] for key in keys}
        return sorted(int(number) for number in numbers if number.isascii() and number.isdigit())

    @property
    def dltools_labels(self) -> dict[str, str]:
        """The labels that are meant for this toolkit."""
        return {k: v for k, v in sorted(self.labels.items()) if k.startswith(PREFIX)}


class Engine:
    """A connection to one engine. Methods raise `UnavailableError` or `AccessError` if the engine
    does not answer, `GoneError` if it has no such container, and `RefusedError` if it refuses."""

    def __init__(self, transport: Transport | None = None) -> None:
        """Use a transport, or find the engine as `connect` does."""
        self._transport = transport or connect()
        self.is_local = self._transport.is_local
        info = self._transport.json("GET", "/info")
        self.id: str = info.get("ID") or ""
        self.host: str = info.get("Name") or ""
        swarm = info.get("Swarm") or {}
        self.node_id: str = swarm.get("NodeID") or ""
        self.swarm = Swarm(self._transport) if swarm.get("ControlAvailable") else None
        self.cpus: int = info.get("NCPU") or 0
        self.memory: int = info.get("MemTotal") or 0
        devices = info.get("DiscoveredDevices") or []
        self.has_gpu: bool = "nvidia" in (info.get("Runtimes") or {}) or any(
            str(device.get("ID")).startswith("nvidia.com/gpu") for device in devices
        )

    def containers(self, filters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the running and paused containers, in the words of Docker's list."""
        params = {"filters": json.dumps(dict(filters))} if filters else {}
        return list(self._transport.json("GET", "/containers/json", params))

    def ids(self) -> set[str]:
        """Return the ids of all containers, those that do not run too."""
        return {one["Id"] for one in self._transport.json("GET", "/containers/json", {"all": 1})}

    def has_task_of(self, service_id: str) -> bool:
        """Tell whether a task of a Swarm service runs here."""
        return bool(self.containers({"label": [f"{SERVICE}={service_id}"]}))

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name."""
        raw = self._transport.json("GET", f"/containers/{_quoted(id_)}/json")
        if not isinstance(raw, dict) or "State" not in raw:  # the name is that of another path
            raise GoneError(f"{id_!r} is not the name of a container")
        return _container(raw)

    def update(self, id_: str, settings: Mapping[str, Any]) -> None:
        """Set fields of a container, under the engine's own names."""
        self._transport.json("POST", f"/containers/{_quoted(id_)}/update", body=dict(settings))

    def pause(self, id_: str) -> None:
        """Freeze a container's processes."""
        self._transport.json("POST", f"/containers/{_quoted(id_)}/pause")

    def unpause(self, id_: str) -> None:
        """Thaw a container's processes."""
        self._transport.json("POST", f"/containers/{_quoted(id_)}/unpause")

    def create(self, name: str, body: Mapping[str, Any]) -> str:
        """Create a container, which does not run yet, and return its id."""
        answer = self._transport.json("POST", "/containers/create", {"name": name}, dict(body))
        return str(answer["Id"])

    def start(self, id_: str) -> None:
        """Start a container, unless it runs."""
        self._transport.json("POST", f"/containers/{_quoted(id_)}/start")

    def signal(self, id_: str, name: str) -> None:
        """Send a signal, such as SIGTERM, to a container's first process."""
        self._transport.json("POST", f"/containers/{_quoted(id_)}/kill", {"signal": name})

    def remove(self, id_: str) -> None:
        """Remove a container that does not run."""
        self._transport.json("DELETE", f"/containers/{_quoted(id_)}")

    def image_id(self, name: str) -> str | None:
        """Return the id of an image, None where it is absent."""
        found = self._known(f"/images/{_quoted(name)}/json")
        return found and str(found["Id"])

    def has_volume(self, name: str) -> bool:
        """Tell whether there is a volume of a name."""
        return self._known(f"/volumes/{_quoted(name)}") is not None

    def has_network(self, name: str) -> bool:
        """Tell whether there is a network of a name."""
        return self._known(f"/networks/{_quoted(name)}") is not None

    def _known(self, path: str) -> Any:
        try:
            return self._transport.json("GET", path)
        except GoneError:
            return None

    def stats(self, id_: str) -> Mapping[str, Any]:
        """Return a container's counters, in the words of Docker's stats."""
        params = {"stream": "false", "one-shot": "true"}
        found = self._transport.json("GET", f"/containers/{_quoted(id_)}/stats", params)
        return found if isinstance(found, dict) else {}

    def run(self, id_: str, command: Sequence[str]) -> int:
        """Run a command inside a container and return its exit status."""
        request = {"Cmd": list(command), "AttachStdout": True, "AttachStderr": True}
        exec_id = self._transport.json("POST", f"/containers/{_quoted(id_)}/exec", body=request)[
            "Id"
        ]
        self._transport.json("POST", f"/exec/{exec_id}/start", body={"Detach": False})
        return int(self._transport.json("GET", f"/exec/{exec_id}/json")["ExitCode"] or 0)

    def archive(self, id_: str, path: str) -> Iterator[bytes]:
        """Return a file or folder of a container, running or not, as the chunks of a tar stream.

        Raises `GoneError` also where the container has no such path.
        """
        return self._transport.chunks(f"/containers/{_quoted(id_)}/archive", {"path": path})

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Yield what a container has logged since a time (seconds since the epoch), as it comes.

        Each entry begins with the engine's time stamp and a blank. An entry without a line end goes
        on in the next one: the engine cuts entries at 16 KiB.
        """
        path, params = _log_request(container, since, follow=False)
        splitter = EntrySplitter(container.tty)
        for data in self._transport.chunks(path, params):
            yield splitter.feed(data)
        yield splitter.end()

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> Flow:
        """Return a container's log as it comes, until it exits; `EntrySplitter` cuts it.
        `is_new_only` leaves out what is there already, through which the engine has to read."""
        tail = "0" if is_new_only else "all"
        return self._transport.follow(*_log_request(container, since, follow=True, tail=tail))

    def events(self, since: float) -> Iterator[dict[str, Any]]:
        """Yield container events from a time on (seconds since the epoch), for ever."""
        params = {"since": f"{since:.9f}", "filters": _CONTAINERS}
        return _records(self._transport.chunks("/events", params, endless=True))

    def past_events(self, since: float, until: float) -> list[dict[str, Any]]:
        """Return the container events between two times that the engine still remembers (both in
        seconds since the epoch)."""
        params = {"since": f"{since:.9f}", "until": f"{until:.9f}", "filters": _CONTAINERS}
        return list(_records(self._transport.chunks("/events", params)))


_CONTAINERS = json.dumps({"type": ["container"]})


def _records(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a stream, one a line."""
    splitter = LineSplitter()
    for chunk in chunks:
        yield from (json.loads(line) for line in splitter.feed(chunk) if line.strip())
    yield from (json.loads(line) for line in splitter.end() if line.strip())


def _quoted(id_: str) -> str:
    return quote(id_, safe="", errors="replace")


def _container(raw: Mapping[str, Any]) -> Container:
    state, config = raw["State"], raw["Config"]
    return Container(
        id=raw["Id"],
        name=raw["Name"].removeprefix("/"),
        image=config.get("Image") or raw.get("Image") or "",
        state=state.get("Status") or "",
        pid=state.get("Pid") or 0,
        started=engine_time(state.get("StartedAt")),
        tty=bool(config.get("Tty")),
        labels=config.get("Labels") or {},
        host_config=raw.get("HostConfig") or {},
        raw=raw,
    )


def engine_time(text: str | None) -> datetime | None:
    """Return the time of the engine's text (RFC 3339), None if it is empty or in the year 1."""
    if not text or text.startswith("0001-"):
        return None
    try:
        return parse_time(text)
    except ValueError:
        return None


def _log_request(
    container: Container, since: float, *, follow: bool, tail: str = "all"
) -> tuple[str, Params]:
    params: Params = {
        "stdout": 1,
        "stderr": 1,
        "timestamps": 1,
        "follow": int(follow),
        "tail": tail,
        "since": f"{since:.9f}",
    }
    return f"/containers/{_quoted(container.id)}/logs", params
