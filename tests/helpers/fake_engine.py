"""A Docker engine that answers over a unix socket as the real one does, and fails on demand."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Action, Op, Plan
from dltools.actions.settings import Settings

ID = "f" * 64
NAME = "fake-job"
HOST = "fake-host"

_ENDINGS = ("json", "logs", "stats", "update", "pause", "unpause", "archive")
_PAUSES = {"pause": ("running", "paused"), "unpause": ("paused", "running")}


@dataclass
class FakeContainer:
    """What the engine knows of a container; it refuses to unpause it `refusals` times more."""

    id: str = ID
    name: str = NAME
    state: str = "running"
    pid: int = 0
    started: str = "2020-01-01T00:00:00.000000001Z"
    labels: dict[str, str] = field(default_factory=dict)
    host_config: dict[str, Any] = field(
        default_factory=lambda: dict.fromkeys(("NanoCpus", "CpuQuota", "CpuPeriod", "CpuShares"), 0)
    )
    updates: list[dict[str, Any]] = field(default_factory=list)
    log: bytes = b""
    archive: bytes | None = None
    counted: dict[str, Any] = field(default_factory=dict)
    refusals: int = 0


class _Of:
    """A field of the first container, as if it were the engine's: most tests need one alone."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, engine: FakeEngine, owner: type) -> Any:
        return getattr(engine.first, self._name)

    def __set__(self, engine: FakeEngine, value: Any) -> None:
        setattr(engine.first, self._name, value)


class FakeEngine:
    """An engine of no real machine, with one container at first.

    `faults` maps "METHOD /path-ending" to the status to answer, 0 for hanging up; `after_update`
    is called when an update has been made. `info`: what else it says of itself; `warnings`: what it
    answers to an update.
    """

    state, pid, started, labels, host_config = _Of(), _Of(), _Of(), _Of(), _Of()
    updates, log, archive, counted = _Of(), _Of(), _Of(), _Of()

    def __init__(self, socket: Path, host: str = HOST) -> None:
        self.socket = socket
        self.host = host
        self.id = "FAKE" if host == HOST else host
        self.delay_s = 0.0
        self.server = "Docker/20.10.24 (linux)"
        self.asked: list[str] = []
        self.url = f"unix://{socket}"
        self.faults: dict[str, int] = {}
        self.first = FakeContainer()
        self.containers = {ID: self.first}
        self.is_there = True
        self.ignores_updates = False
        self.ends_events = False
        self.info: dict[str, Any] = {}
        self.warnings: list[str] | None = None
        self.after_update: Callable[[], object] = lambda: None

    def add(self, *names: str) -> None:
        for name in names:
            self.containers[name] = FakeContainer(name, name)

    @property
    def states(self) -> dict[str, str]:
        return {one.name: one.state for one in self.containers.values()}

    @classmethod
    def over_tcp(cls, host: str, delay_s: float = 0.0) -> Self:
        """Return an engine on a port of its own, which takes so long for each answer."""
        made = cls(Path("none"), host)
        made.url, made.delay_s = "", delay_s
        return made

    def __enter__(self) -> Self:
        if self.url:
            self._server: socketserver.BaseServer = _Server(str(self.socket), _handler(self))
        else:
            self._server = _TcpServer(("127.0.0.1", 0), _handler(self))
            self.url = f"tcp://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        for ending, status in self.faults.items():
            verb, _, tail = ending.partition(" ")
            if verb == method and path.endswith(tail):
                return status, {"message": f"status {status} on demand"}
        if path == "/version":
            return 200, {"ApiVersion": "1.41", "Version": "20.10"}
        tail = path.split("/", 2)[2]  # without /v1.41
        if tail == "info":
            known = {"ID": self.id, "Name": self.host, "NCPU": 4, "MemTotal": 1 << 33}
            return 200, known | self.info
        if tail == "containers/json":
            return 200, [
                {"Id": one.id, "Names": [f"/{one.name}"], "State": one.state}
                for one in self.containers.values()
            ]
        if tail == "events":
            return 200, b""  # those of the past; nothing ever happens
        folder, _, what = tail.rpartition("/")
        found = [
            one
            for one in self.containers.values()
            if folder in (f"containers/{one.id}", f"containers/{one.name}")
        ]
        if not found or what not in _ENDINGS or not self.is_there:
            return 404, {"message": "No such container"}
        return self._answer_of(found[0], what, body)

    def _answer_of(self, one: FakeContainer, what: str, body: Any) -> tuple[int, Any]:
        if what in _PAUSES:
            return _change_state(one, *_PAUSES[what])
        if what == "archive":
            missing = {"message": f"Could not find the file in container {one.id}"}
            return (404, missing) if one.archive is None else (200, one.archive)
        if what == "stats":
            return 200, one.counted
        if what == "logs":
            return 200, b"".join(_frame(line) for line in one.log.splitlines(keepends=True))
        if what == "update":
            one.updates.append(body)
            if not self.ignores_updates:
                one.host_config |= body
            self.after_update()
            return 200, {"Warnings": self.warnings}
        state = {"Status": one.state, "Pid": one.pid, "StartedAt": one.started}
        return 200, {
            "Id": one.id,
            "Name": f"/{one.name}",
            "State": state,
            "HostConfig": one.host_config,
            "Config": {"Image": "i", "Tty": False, "Labels": one.labels},
        }


def _change_state(one: FakeContainer, before: str, after: str) -> tuple[int, Any]:
    if one.refusals and after == "running":
        one.refusals -= 1
        return 500, {"message": "containerd is stopping"}
    if one.state != before:
        return 409, {"message": f"Container {one.id} is not {before}"}
    one.state = after
    return 204, b""


def action(wanted: Settings, op: Op = Op.UPDATE, **changes: Any) -> Action:
    """Return an action on the container. `changes` replace what it would be."""
    values = {
        "id": 1,
        "op": op,
        "host": HOST,
        "container_id": ID,
        "container_name": NAME,
        "set": wanted,
        "expect": {},
        "reason": "test",
    }
    return Action(**(values | changes))


def plan_of(*actions: Action) -> Plan:
    """Return a plan that was made after the container started."""
    return Plan("test", "2026-01-01T00:00:00Z", {}, {}, None, actions)


def plan(*wanted: Settings) -> bytes:
    """Return a plan with an action on the container for each of the settings."""
    actions = (action(settings, id=number) for number, settings in enumerate(wanted, 1))
    return dump_plan(plan_of(*actions)).encode()


def _frame(line: bytes) -> bytes:
    return b"\x01\0\0\0" + len(line).to_bytes(4, "big") + line


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 32


def _handler(fake: FakeEngine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply("GET")

        def do_POST(self) -> None:
            self._reply("POST")

        def version_string(self) -> str:
            return fake.server

        def _reply(self, method: str) -> None:
            fake.asked.append(f"{method} {self.path}")
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            path, _, query = self.path.partition("?")
            if path.endswith("/events") and "until=" not in query and not fake.ends_events:
                self._keep_open()
                return
            time.sleep(fake.delay_s)
            status, found = fake.answer(method, path, body)
            content = found if isinstance(found, bytes) else json.dumps(found).encode()
            kind = "application/json" if content is not found else "application/octet-stream"
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _keep_open(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.connection.recv(1)  # until the other side hangs up

        def address_string(self) -> str:
            return "unix"

        def log_message(self, *_: object) -> None:
            pass

    return Handler
