"""Docker and Podman: containers made and looked at through docker-py, as others would."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from contract.subject import Job, Relay, Subject, Traits
from helpers.containers import Containers, build_image, eventually
from helpers.containers import Job as Made
from helpers.engine_relay import EngineRelay

from dltools.engine.address import Address
from dltools.engine.interface import Capabilities
from dltools.engine.registry import open_engine
from dltools.errors import DltoolsError

_NO_MOVES = Capabilities(creates=False, why="dl-apply moves containers only between Docker engines")
TRAITS = {
    "docker": Traits(Capabilities(), tells_past=True, is_relayed=True, records=False),
    "podman-4.3": Traits(
        Capabilities(creates=False, keeps=False, why=_NO_MOVES.why), is_relayed=True
    ),
    "podman-5.4": Traits(_NO_MOVES, is_relayed=True),
}


@dataclass(frozen=True)
class _Job(Made):
    is_podman: bool = False

    def record(self) -> Mapping[str, object]:
        config = self._api.inspect_container(self.id)["HostConfig"]
        quota, period = config["CpuQuota"] or -1, config["CpuPeriod"] or 100_000
        nano = 0 if self.is_podman else config["NanoCpus"] or 0
        cpus = nano / 1e9 if nano else quota / period if quota > 0 else 0
        every = f"0-{(os.cpu_count() or 1) - 1}"
        return {
            "cpus": 0 if cpus >= (os.cpu_count() or 1) else cpus,
            "weight": self.inspect().recorded.get("weight", 1024),
            "cpuset": config["CpusetCpus"] or every,
            "restart": config["RestartPolicy"],
            "memory": config["Memory"],
            "processes": config["PidsLimit"],
        }

    @property
    def is_frozen(self) -> bool:
        with suppress(AssertionError, FileNotFoundError):  # version 2 has no such controller
            return "FROZEN" in (self.directory("freezer") / "freezer.state").read_text()
        return "frozen 1" in (self.directory("cpu") / "cgroup.events").read_text()

    def pause(self) -> None:
        from docker.errors import APIError

        def paused() -> bool:
            with suppress(APIError):  # runc loses races with processes that start
                self._api.pause(self.id)
            return self.is_frozen

        eventually(paused)

    def unpause(self) -> None:
        self._api.unpause(self.id)

    def change_weight(self, weight: int) -> None:
        if self.is_podman:
            path = f"/v1.41/libpod/containers/{self.id}/update"
            body = {"cpu": {"shares": weight}}
            url = f"{self._api.base_url}{path}"
            self._api.post(url, json=body, timeout=60).raise_for_status()
        else:
            self._api.update_container(self.id, cpu_shares=weight)

    def kill(self) -> None:
        if pid := self.inspect().pid:
            os.kill(pid, 9)


class _Subject:
    def __init__(self, name: str, socket_path: str) -> None:
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
        is_podman = self.name.startswith("podman")
        self.jobs.append(_Job(self.engine, made.id, made.name, self._client, is_podman))
        return self.jobs[-1]

    @contextmanager
    def relay(self) -> Iterator[Relay]:
        with (
            tempfile.TemporaryDirectory() as folder,
            EngineRelay(self._path, Path(folder, "relay.sock")) as made,
        ):
            yield made


@contextmanager
def subject(name: str) -> Iterator[Subject]:
    """Give Docker, or the Podman that the environment names."""
    if name == "docker":
        path = os.environ.get("DOCKER_HOST", "/var/run/docker.sock").removeprefix("unix://")
    elif not (path := os.environ.get("PODMAN_SOCKET", "")):
        raise LookupError(f"{name} does not run here: see tests/engines/podman")
    try:
        made = _Subject(name, path)
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
