"""containerd by CRI: pods made as kubelet makes them, and looked at in its verbose status."""

import itertools
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
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
class CriJob:
    """A container of a pod, as the contract tests see it."""

    made: Made
    pods: Pods

    @property
    def id(self) -> str:
        return self.made.id

    @property
    def name(self) -> str:
        return self.made.name

    def kernel(self) -> dict[str, str]:
        return self.made.kernel()

    def record(self) -> Mapping[str, object]:
        native: Mapping[str, Any] = self.made.inspect().native
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
        return self.made.directory("freezer") / "freezer.state"

    @property
    def is_frozen(self) -> bool:
        return self._freezer().read_text().strip() == "FROZEN"

    def pause(self) -> None:
        self._freezer().write_text("FROZEN")

    def unpause(self) -> None:
        self._freezer().write_text("THAWED")

    def change_weight(self, weight: int) -> None:
        self.pods.update(self.id, shares=weight)

    def kill(self) -> None:
        os.kill(self.made.inspect().pid, 9)

    def restart(self) -> None:
        raise NotImplementedError("in CRI a container starts once")


class CriNode:
    traits = TRAITS

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.url = address.replace("unix://", "cri://")
        self.engine = open_engine(Address(self.url, "--host", name=name))
        namespace = f"test-{uuid.uuid4().hex[:8]}"
        self.only = ["--name", f"^{namespace}/"]
        self.pods = Pods(address, namespace)
        self._pod: Pod | None = None
        self._numbers = itertools.count(1)

    def start(self, script: str, name: str = "job", *, keeps_on: bool = False) -> Job:
        del keeps_on  # kubelet would make another container
        if self._pod is None:
            allowed = {"dltools.pause": "allow"}
            self._pod = self.pods.run_pod("pod", annotations=allowed, parent=self.pods.parent)
        called = f"{name}-{next(self._numbers)}"
        id_ = self.pods.run_container(self._pod, called, ["sh", "-c", script])
        return CriJob(Made(self.engine, id_, f"{self.pods.namespace}/pod/{called}"), self.pods)

    def relay(self) -> AbstractContextManager[Relay]:
        raise NotImplementedError("requests of gRPC are not cut off here")


@contextmanager
def subject(name: str) -> Iterator[Subject]:
    """Give the containerd that the environment names."""
    address = os.environ.get("CONTAINER_RUNTIME_ENDPOINT", "")
    if not address:
        raise LookupError(f"{name} does not run here: see tests/engines/containerd")
    try:
        made = CriNode(name, address)
    except DltoolsError as error:
        raise LookupError(str(error)) from error
    try:
        yield made
    finally:
        made.pods.close()
