"""containerd by CRI: pods made as kubelet makes them, and looked at in its verbose status."""

import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.subject import Job, Relay, Subject, Traits
from helpers.containers import Job as Made
from helpers.cri_pods import Pod, Pods

from dltools.engine.address import Address
from dltools.engine.interface import Capabilities
from dltools.engine.registry import open_engine
from dltools.errors import DltoolsError

TRAITS = Traits(
    Capabilities(
        frozenset({"cpus", "weight"}),
        creates=False,
        leases_only=True,
        why="CPU lists and moves are kubelet's on a Kubernetes node",
    ),
    restarts=False,
    tells_past=True,
)


@dataclass(frozen=True)
class CriJob(Made):
    """A container of a pod. `client` changes it as kubelet does."""

    def record(self) -> Mapping[str, object]:
        native: Mapping[str, Any] = self.inspect().native
        cpu = native["runtimeSpec"]["linux"]["resources"].get("cpu") or {}
        quota, period = cpu.get("quota") or -1, cpu.get("period") or 100_000
        return {
            "cpus": quota / period if quota > 0 else 0,
            "weight": cpu.get("shares") or 1024,
            "cpuset": cpu.get("cpus") or "",
            "asked": native["config"]["linux"]["resources"],
            "restart": "",
        }

    def _freezer(self) -> Path:
        return self.directory("freezer") / "freezer.state"

    @property
    def is_frozen(self) -> bool:
        return self._freezer().read_text().strip() == "FROZEN"

    def pause(self) -> None:
        self._freezer().write_text("FROZEN")

    def unpause(self) -> None:
        self._freezer().write_text("THAWED")

    def change_weight(self, weight: int) -> None:
        self.client.update(self.id, shares=weight)

    def kill(self) -> None:
        os.kill(self.inspect().pid, 9)

    def restart(self) -> None:
        raise NotImplementedError("in CRI a container starts once")


class CriNode:
    """Its containers are in one pod."""

    traits = TRAITS

    def __init__(self, name: str, address: str, namespace: str = "") -> None:
        self.name = name
        self.url = address.replace("unix://", "cri://")
        self.engine = open_engine(Address(self.url, "--host", name=name))
        self.pods = Pods(address, namespace or f"test-{uuid.uuid4().hex[:8]}")
        self.only = ["--name", f"^{self.pods.namespace}/"]
        self._pod: Pod | None = None
        self._numbers = itertools.count(1)

    def start(self, script: str, name: str = "job", *, keeps_on: bool = False) -> Job:
        del keeps_on  # kubelet would make another container
        id_, path = self._run(f"{name}-{next(self._numbers)}", script)
        return CriJob(self.engine, id_, f"{self.pods.namespace}/{path}", self.pods)

    def _run(self, name: str, script: str) -> tuple[str, str]:
        """Return the id, and the name within the namespace."""
        if self._pod is None:
            allowed = {"dltools.pause": "allow"}
            self._pod = self.pods.run_pod("pod", annotations=allowed, parent=self.pods.parent)
        return self.pods.run_container(self._pod, name, ["sh", "-c", script]), f"pod/{name}"

    def relay(self) -> AbstractContextManager[Relay]:
        raise NotImplementedError("requests of gRPC are not cut off here")

    def close(self) -> None:
        self.pods.close()


@contextmanager
def node(
    name: str, engine: str, make: Callable[..., CriNode], variables: Sequence[str]
) -> Iterator[Subject]:
    """Give the node that these environment variables name."""
    values = [os.environ.get(variable, "") for variable in variables]
    if not all(values):
        raise LookupError(f"{name} does not run here: see tests/engines/{engine}")
    try:
        made = make(name, *values)
    except DltoolsError as error:
        raise LookupError(str(error)) from error
    with closing(made):
        yield made


def subject(name: str) -> AbstractContextManager[Subject]:
    """Give the containerd that the environment names."""
    return node(name, "containerd", CriNode, ["CONTAINER_RUNTIME_ENDPOINT"])
