"""Docker and Podman: containers made and looked at through docker-py, as others would."""

import os
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.subject import Job, Relay, Subject, Traits
from helpers.containers import Containers, build_image, eventually
from helpers.containers import Job as Made

from dltools.engine.address import Address
from dltools.engine.interface import Capabilities
from dltools.engine.registry import open_engine
from dltools.errors import DltoolsError

_NO_MOVES = Capabilities(
    creates=False, why="dl-apply moves containers between Docker engines alone"
)
TRAITS = {
    "docker": Traits(Capabilities(), tells_past=True, is_relayed=True, keeps_quota=False),
    "podman-4.3": Traits(
        Capabilities(creates=False, keeps=False, why=_NO_MOVES.why), is_relayed=True
    ),
    "podman-5.4": Traits(_NO_MOVES, is_relayed=True),
}


@dataclass(frozen=True)
class _Job:
    made: Made
    client: Any
    is_podman: bool

    @property
    def id(self) -> str:
        return self.made.id

    @property
    def name(self) -> str:
        return self.made.name

    def kernel(self) -> dict[str, str]:
        return self.made.kernel()

    def record(self) -> Mapping[str, object]:
        config = self.client.inspect_container(self.id)["HostConfig"]
        quota, period = config["CpuQuota"] or -1, config["CpuPeriod"] or 100_000
        nano = 0 if self.is_podman else config["NanoCpus"] or 0
        cpus = nano / 1e9 if nano else quota / period if quota > 0 else 0
        every = f"0-{(os.cpu_count() or 1) - 1}"
        return {
            "cpus": 0 if cpus >= (os.cpu_count() or 1) else cpus,
            "weight": self.made.inspect().recorded.get("weight", 1024),
            "cpuset": config["CpusetCpus"] or every,
            "restart": config["RestartPolicy"],
            "memory": config["Memory"],
            "processes": config["PidsLimit"],
        }

    @property
    def is_frozen(self) -> bool:
        with suppress(AssertionError, FileNotFoundError):  # version 2 has no such controller
            return "FROZEN" in (self.made.directory("freezer") / "freezer.state").read_text()
        return "frozen 1" in (self.made.directory("cpu") / "cgroup.events").read_text()

    def pause(self) -> None:
        from docker.errors import APIError

        def paused() -> bool:
            with suppress(APIError):  # runc loses races with processes that start
                self.client.pause(self.id)
            return self.is_frozen

        eventually(paused)

    def unpause(self) -> None:
        self.client.unpause(self.id)

    def change_weight(self, weight: int) -> None:
        if self.is_podman:
            path = f"/v1.41/libpod/containers/{self.id}/update"
            body = {"cpu": {"shares": weight}}
            url = f"{self.client.base_url}{path}"
            self.client.post(url, json=body, timeout=60).raise_for_status()
        else:
            self.client.update_container(self.id, cpu_shares=weight)

    def kill(self) -> None:
        if pid := self.made.inspect().pid:
            os.kill(pid, 9)

    def restart(self) -> None:
        self.made.restart()


class _Subject:
    def __init__(self, name: str, socket_path: Path) -> None:
        from docker import APIClient

        self.name, self.traits = name, TRAITS[name]
        self._path = socket_path
        self.url = f"unix://{socket_path}"
        self.engine = open_engine(Address(self.url, "--host", name=name))
        self._client = APIClient(self.url, version="1.41", timeout=60)
        self.containers = Containers(self.engine, "dltools-test-busybox", self._client)
        self.only = self.containers.only
        self.jobs: list[_Job] = []

    def start(self, script: str, name: str = "job", *, keeps_on: bool = False) -> Job:
        policy = {"Name": "on-failure", "MaximumRetryCount": 3} if keeps_on else {"Name": "no"}
        other = {"mem_limit": "64m", "pids_limit": 99} if keeps_on else {}
        made = self.containers(script, name=name, restart_policy=policy, **other)
        self.jobs.append(_Job(made, self._client, self.name.startswith("podman")))
        return self.jobs[-1]

    @contextmanager
    def relay(self) -> Iterator[Relay]:
        with tempfile.TemporaryDirectory() as folder:
            made = _Relay(self._path, Path(folder, "relay.sock"))
            server = _Server(str(made.path), _handler(made))
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            try:
                yield made
            finally:
                server.shutdown()
                server.server_close()


@contextmanager
def subject(name: str) -> Iterator[Subject]:
    """Give Docker, or the Podman that the environment names."""
    if name == "docker":
        path = os.environ.get("DOCKER_HOST", "/var/run/docker.sock").removeprefix("unix://")
    elif not (path := os.environ.get("PODMAN_SOCKET", "")):
        raise LookupError(f"{name} does not run here: see tests/engines/podman")
    try:
        made = _Subject(name, Path(path))
    except DltoolsError as error:
        raise LookupError(str(error)) from error
    if name == "docker":
        build_image()
    try:
        yield made
    finally:
        for job in made.jobs:
            with suppress(OSError, DltoolsError):  # Podman would wait ten seconds for each
                job.kill()
        made.containers.remove()


@dataclass
class _Relay:
    engine: Path
    path: Path
    changes: list[str] = field(default_factory=list)
    swallows: Callable[[str], bool] = lambda _: False

    @property
    def url(self) -> str:
        return f"unix://{self.path}"


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def _handler(relay: _Relay) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = self.request.recv(1 << 16)
            method, path = [*head.split(b" ", 2), b"", b""][:2]
            change = f"{method.decode()} {path.decode()}" if method != b"GET" else ""
            if change:
                relay.changes.append(change)
            with socket.socket(socket.AF_UNIX) as engine:
                engine.connect(str(relay.engine))
                engine.sendall(head)
                threading.Thread(target=_pump, args=(self.request, engine), daemon=True).start()
                if change and relay.swallows(change):
                    while engine.recv(1 << 16):
                        pass
                else:
                    _pump(engine, self.request)

    return Handler


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
