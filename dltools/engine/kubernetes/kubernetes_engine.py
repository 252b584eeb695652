"""The pods of one node as an API server has them: it changes their quotas for good, and kubelet
knows of it.

What is measured, and what ends by itself, is the runtime's: see `dltools/engine/cri`. A container
keeps its quota when kubelet starts it again, so its id here is that of its place in its pod, and
not the runtime's; `inspect` takes both.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from dltools.engine.address import Address
from dltools.engine.interface import (
    Capabilities,
    Container,
    CpuLimits,
    Engine,
    Event,
    Fields,
    GoneError,
    Listed,
    LocatedContainer,
    LogFlow,
    Move,
    Moves,
    RecordedLimits,
    RefusedError,
    SetsLimits,
    UnableError,
)
from dltools.engine.kubernetes import pod_resources
from dltools.engine.kubernetes.api_server import ApiServer, ConflictError
from dltools.engine.kubernetes.jobs import Jobs, owner
from dltools.engine.kubernetes.pod_resources import Resources
from dltools.engine.patience import Patience
from dltools.errors import ConfigError, DltoolsError, UnavailableError
from dltools.labels import has_labels

SCHEME = "kubernetes:"
NODE_NAME = "NODE_NAME"
"""The variable that names the node of `kubernetes:`."""

_SETTLE_S = 30.0
"""How long kubelet may take to set a quota (ours): it looks at its pods every second or so."""

_SILENT_S = 60.0
"""How long a kubelet that has set nothing is asked for nothing more (ours): a run that waits for it
again and again would seem to hang."""

_POLL_S = 0.25
_TRIES = 5

_CAPABILITIES = Capabilities(
    frozenset({"cpus"}), pauses=False, why="a pod is resized by its limit of CPUs alone"
)

_ONLY_LIMITS = "by its API server a pod is resized; measure it with dl-probe --host cri:///PATH"


def check(address: Address) -> None:
    """Raise `ConfigError` if an address names no node."""
    name = _node_name(address.url)
    if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", name):
        raise ConfigError(
            f"{address.said_by} {address.url!r}: no name of a node; write kubernetes:NODE, or set "
            f"{NODE_NAME} for kubernetes: alone"
        )


def open_engine(
    address: Address, patience_s: float, report_waiting: Callable[[UnavailableError], None]
) -> Engine:
    """Connect to an API server, as `engine/registry.py` says."""
    check(address)
    return KubernetesEngine(_node_name(address.url), Patience(patience_s, report_waiting))


def _node_name(url: str) -> str:
    return url.removeprefix(SCHEME) or os.environ.get(NODE_NAME, "")


class KubernetesEngine(SetsLimits, Moves):
    """A connection to the API server for one node."""

    is_local = False
    capabilities = _CAPABILITIES

    def __init__(
        self,
        node: str,
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask for the node. Raises as the engine does."""
        self._server = ApiServer(patience or Patience(0.0))
        self._sleep, self._clock = sleep, clock
        self._silent_until = -_SILENT_S
        self._known: dict[str, tuple[str, str, str]] = {}
        found = self._server.node(node)
        self.host: str = node
        self.node_id: str = node
        self.services = Jobs(self._server)
        digest = hashlib.sha256(f"{found.metadata.uid}\0{node}".encode()).hexdigest()
        self.id: str = f"kubernetes-{digest[:32]}"
        info, capacity = found.status.node_info, found.status.capacity or {}
        self.version: str = f"kubelet {info.kubelet_version}" if info else ""
        self.has_gpu: bool = capacity.get(pod_resources.GPU, "0") != "0"
        self.cpus: int = int(pod_resources.cores(capacity.get("cpu")) or 0)
        memory = re.fullmatch(r"(\d+)Ki", capacity.get("memory") or "")
        self.memory: int = int(memory[1]) * 1024 if memory else 0

    # What there is

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        """Return the running containers that have all these labels (KEY or KEY=VALUE) and a name
        that one of these expressions matches."""
        wanted = [re.compile(name) for name in names]
        return [
            Listed(one.id, one.name, one.state)
            for one in self._containers()
            if one.state == "running"
            and has_labels(one.labels, labels)
            and (not wanted or any(expression.search(one.name) for expression in wanted))
        ]

    def ids(self) -> set[str]:
        """Return the ids of all containers, those that do not run too."""
        return {one.id for one in self._containers()}

    def inspect(self, id_: str) -> Container:
        """Return one container, by the runtime's id, by its place in its pod, or by name."""
        pod, status = self._found(id_)
        return pod_resources.container_of(pod, status, owner(pod))

    def known_as(self, id_: str) -> str:
        """Return the id of a container's place, given the runtime's id."""
        with suppress(DltoolsError, GoneError, RefusedError):
            return self.inspect(id_).id
        return id_

    def _containers(self) -> Iterator[Container]:
        for pod, status in self._listed():
            yield pod_resources.container_of(pod, status, owner(pod))

    def _listed(self) -> Iterator[tuple[Any, Any]]:
        """Yield the containers of pods that are not over."""
        for pod in self._server.pods(self.host):
            if not pod_resources.has_ended(pod):
                for status in pod_resources.statuses(pod):
                    yield pod, status

    def _found(self, id_: str) -> tuple[Any, Any]:
        """Return a container's pod and status. Pods are all asked for where it is not known."""
        with suppress(KeyError, GoneError):
            namespace, name, container = self._known[id_]
            pod = self._server.pod(namespace, name)
            for status in pod_resources.statuses(pod):
                if status.name == container and id_ in _ids(pod, status):
                    return _living(pod), status
        for pod, status in self._listed():
            if id_ in _ids(pod, status):
                place = (pod.metadata.namespace, pod.metadata.name, status.name)
                self._known[id_] = place
                return pod, status
        raise GoneError(f"no container of node {self.host} is {id_}")

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Refuse: the node's runtime has the logs."""
        raise UnableError(_ONLY_LIMITS)

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> LogFlow:
        """Refuse: the node's runtime has the logs."""
        raise UnableError(_ONLY_LIMITS)

    def events(self, since: float) -> Iterator[Event]:
        """Refuse: the node's runtime has the events."""
        raise UnableError(_ONLY_LIMITS)

    # Limits

    def set_limits(
        self, located: LocatedContainer, wanted: CpuLimits, is_in_force: Callable[[], bool]
    ) -> None:
        """Set a quota, and see kubelet set it. What kubelet cannot set, or not now, is taken back:
        it would come at any later time."""
        cpus = wanted["cpus"] if wanted["cpus"] is not None else float(self.cpus)
        container = located.container
        if self._clock() < self._silent_until:
            raise RefusedError(f"kubelet of {self.host} has not set what it was given before")
        try:
            self._resize(
                container, lambda pod: pod_resources.resized(pod, container.native["name"], cpus)
            )
        except _NotSetError as error:
            before = pod_resources.original(container.limit_fields)
            try:
                self._resize(container, lambda _: before)
            except _NotSetError as second:
                raise RefusedError(f"{error}; taken back, but {second}") from error
            raise RefusedError(str(error)) from error

    def restore_limits(
        self,
        located: LocatedContainer,
        original: Fields,
        wanted: CpuLimits,
        is_in_force: Callable[[], bool],
    ) -> None:
        """Restore the limit and the request that a container had when its `limit_fields` were
        these."""
        try:
            self._resize(located.container, lambda _: pod_resources.original(original))
        except _NotSetError as error:
            raise RefusedError(f"the pod asks for its own again, and {error}") from error

    def recorded(self, limit_fields: Fields) -> RecordedLimits:
        """Return the limits for which the fields of a journal's entry stand."""
        return pod_resources.recorded_limits(limit_fields)

    def _resize(self, container: Container, resources_for: Callable[[Any], Resources]) -> None:
        """Set resources, and wait for kubelet. Raises `_NotSetError` where it does not set them."""
        name = container.native["name"]
        for attempts_left in range(_TRIES - 1, -1, -1):
            pod, _ = self._found(container.id)
            wanted = resources_for(pod)
            try:
                self._server.resize(pod, name, wanted)
                break
            except ConflictError as error:  # kubelet has written the pod's status meanwhile
                if not attempts_left:
                    raise RefusedError(f"its pod changes all the time: {error}") from error
        until = self._clock() + _SETTLE_S
        while True:
            pod, _ = self._found(container.id)
            if pod_resources.is_in_force(pod, name, wanted):
                return
            if reason := pod_resources.obstacle(pod):
                raise _NotSetError(reason)
            if self._clock() >= until:
                self._silent_until = self._clock() + _SILENT_S
                raise _NotSetError(f"kubelet has not resized it in {_SETTLE_S:.0f} s")
            self._sleep(_POLL_S)

    # Moves of Jobs: `jobs` has the steps, and kubelet fetches images and volumes

    def describe_move(self, container: Container, original: Fields, image: str) -> Move:
        """Return how long a container's pod may take to stop."""
        return Move({}, {}, "SIGTERM", container.native["grace_s"])

    def describe_look(self, container: Container, image: str) -> Fields:
        """Return {}: a volume is the same on all nodes."""
        return {}

    def image_id(self, name: str) -> str | None:
        """Return the name of an image: kubelet fetches it."""
        return name

    def has_task_of(self, service_id: str) -> bool:
        """Return False: the manager of the services knows all pods."""
        return False


class _NotSetError(Exception):
    """Kubelet has not set what a pod's specification has; the message says why."""


def _living(pod: Any) -> Any:
    if pod_resources.has_ended(pod):
        raise GoneError(f"pod {pod.metadata.name} is over")
    return pod


def _ids(pod: Any, status: Any) -> set[str]:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}/{status.name}"
    place = pod_resources.lasting_id(pod, status.name)
    return {place, name, *pod_resources.runtime_ids(status)}
