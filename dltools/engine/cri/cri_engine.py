"""The runtime of a Kubernetes node, containerd or CRI-O, by CRI: it shows what kubelet has made
there, and takes changes of quotas and weights.

What kubelet keeps for itself is left alone: CPU lists, where and whether a container runs. CRI has
no word for a pause, and shows no probes, which fail while a container is paused: a pause is by the
kernel's freezer, and only where the pod allows it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.engine import cgroup, freezer, host, looked_events
from dltools.engine.address import Address
from dltools.engine.cgroup import Cgroup
from dltools.engine.cgroup_files import Directory
from dltools.engine.cri import answers
from dltools.engine.cri.connection import Connection, socket_path
from dltools.engine.cri.cpu_resources import CriLimits
from dltools.engine.interface import (
    Capabilities,
    Container,
    Engine,
    Event,
    GoneError,
    Listed,
    LogFlow,
    RefusedError,
)
from dltools.engine.kernel_reading import read_text
from dltools.engine.log_reading import FollowedFile, read_log
from dltools.engine.parts import Pauses
from dltools.engine.patience import Patience
from dltools.engine.pauses import may_pause, why_no_pause
from dltools.errors import ConfigError, DltoolsError, UnavailableError
from dltools.labels import has_labels

if TYPE_CHECKING:
    from dltools.engine.cri import runtime_pb2 as messages

NODE_NAME = "NODE_NAME"
"""The variable that names the node where a pod's own host name is another."""

_RUNNING = 1  # ContainerState

_CAPABILITIES = Capabilities(
    frozenset({"cpus", "weight"}),
    pauses=True,
    creates=False,
    leases_only=True,
    why="CPU lists and moves are kubelet's on a Kubernetes node",
)


def check(address: Address) -> None:
    """Raise `ConfigError` if an address is not one of a socket."""
    try:
        socket_path(address.url)
    except ConfigError as error:
        raise ConfigError(f"{address.said_by} {error}") from error


def open_engine(
    address: Address, patience_s: float, report_waiting: Callable[[UnavailableError], None]
) -> Engine:
    """Connect to a runtime, as `engine/registry.py` says."""
    check(address)
    return CriEngine(address.url, Patience(patience_s, report_waiting))


class CriEngine(Engine, Pauses):
    """A connection to the runtime of one node."""

    is_local = True
    capabilities = _CAPABILITIES

    def __init__(self, url: str, patience: Patience | None = None) -> None:
        """Ask which runtime it is. Raises as the engine does."""
        self._connection = Connection(url, patience or Patience(0.0))
        self._cgroups = _Cgroups()
        self.parts = (CriLimits(self._connection),)
        version = self._connection.ask("Version", waits=False)
        status = self._connection.ask("Status", verbose=True)
        self.host: str = os.environ.get(NODE_NAME) or os.uname().nodename
        machine = read_text("/etc/machine-id").strip() or self.host
        words = (machine, version.runtime_name, answers.root_of(status.info))
        self.id: str = f"cri-{hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:32]}"
        self.cpus: int = host.online_cpus()
        self.memory: int = host.memory_bytes().get("MemTotal", 0)

    # What there is

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        """Return the running and paused containers that have all these labels (KEY or KEY=VALUE)
        and a name that one of these expressions matches."""
        listeds = []
        for container, pod in self._with_pods():
            name = answers.container_name(container.metadata.name, pod.metadata)
            all_labels = answers.labels_of(container.labels, pod)
            is_named = not names or any(re.search(expression, name) for expression in names)
            if container.state == _RUNNING and has_labels(all_labels, labels) and is_named:
                listeds.append(Listed(container.id, name, self._state(container.id, all_labels)))
        return listeds

    def _state(self, id_: str, labels: Mapping[str, str]) -> str:
        """Return the state of a container that CRI calls running."""
        return "paused" if may_pause(labels) and self._is_paused(id_) else "running"

    def _is_paused(self, id_: str) -> bool:
        try:
            if id_ not in self._cgroups:
                return self.inspect(id_).state == "paused"
            return freezer.is_frozen(self._cgroups.freezer(id_))
        except GoneError:
            return False

    def ids(self) -> set[str]:
        """Return the ids of all containers, those that do not run too."""
        return {container.id for container in self._list()}

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name."""
        container_id = self._id_of(id_)
        answer = self._connection.ask("ContainerStatus", container_id=container_id, verbose=True)
        pod_id = str(answers.info_of(answer.info).get("sandboxID") or "")
        pod = self._connection.ask("PodSandboxStatus", pod_sandbox_id=pod_id).status
        container = answers.container_of(answer, pod)
        place = self._cgroups.of(container)
        is_paused = place is not None and freezer.is_frozen(place.directory("freezer"))
        return replace(container, state="paused") if is_paused else container

    def _list(self) -> list[messages.Container]:
        containers = list(self._connection.ask("ListContainers").containers)
        self._cgroups.keep({container.id for container in containers})
        return containers

    def _with_pods(self) -> Iterator[tuple[messages.Container, messages.PodSandbox]]:
        """Yield all containers with their pods, but for those whose pod has just come or gone."""
        pods = {item.id: item for item in self._connection.ask("ListPodSandbox").items}
        for container in self._list():
            if container.pod_sandbox_id in pods:
                yield container, pods[container.pod_sandbox_id]

    def _id_of(self, text: str) -> str:
        """Return the id of a container, given that or its name, which another one may have had."""
        if "/" not in text:
            return text
        named = [
            container
            for container, pod in self._with_pods()
            if answers.container_name(container.metadata.name, pod.metadata) == text
        ]
        if not named:
            raise GoneError(f"no container is called {text}")
        return max(
            named, key=lambda container: (container.state == _RUNNING, container.metadata.attempt)
        ).id

    # Logs and events

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Yield what a container has logged since a time, from its files on the node."""
        with _log_of(container) as path:
            yield from read_log(path, since)

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> LogFlow:
        """Return a container's log as it comes, until it exits."""

        def has_ended() -> bool:
            try:
                return self.inspect(container.id).state not in ("running", "paused")
            except DltoolsError:
                return True

        with _log_of(container) as path:
            return FollowedFile(path, since, has_ended, is_new_only=is_new_only)

    def events(self, since: float) -> Iterator[Event]:
        """Yield container events from a time on (seconds since 1970), for ever."""
        return looked_events.watch(self, since)

    def past_events(self, since: float, until: float) -> list[Event]:
        """Return the events between two times that the containers tell which kubelet has kept."""
        return looked_events.past(self, since, until)

    # Turns

    def pause(self, id_: str) -> None:
        """Freeze a container's processes, where its pod allows it."""
        container = self.inspect(id_)
        if refusal := why_no_pause(container):
            raise RefusedError(refusal)
        freezer.freeze(self._cgroups.freezer(container.id))

    def unpause(self, id_: str) -> None:
        """Thaw a container's processes."""
        freezer.thaw(self._cgroups.freezer(self.inspect(id_).id))


class _Cgroups:
    """The cgroups of the containers that run."""

    def __init__(self) -> None:
        self._mounts = cgroup.mounts()
        self._known: dict[str, Cgroup] = {}

    def of(self, container: Container) -> Cgroup | None:
        """Look for the cgroup of a container, None where it has none."""
        if container.state != "running":
            self._known.pop(container.id, None)
            return None
        group = cgroup.of_process(container.pid, self._mounts, container_id=container.id)
        group = group or self._of_the_rest(container)
        if group is not None:
            self._known[container.id] = group
        return group

    def _of_the_rest(self, container: Container) -> Cgroup | None:
        """Return the cgroup of a container whose first process is ending, and has left it: if the
        others were frozen meanwhile, they can only end when they are thawed."""
        earlier = self._known.get(container.id)
        if earlier is not None and earlier.exists:
            return earlier
        spec = container.native.get("runtimeSpec") or {}
        path = str((spec.get("linux") or {}).get("cgroupsPath") or "")
        group = cgroup.at_path(path, self._mounts) if path.startswith("/") else None
        return group if group is not None and group.exists else None

    def __contains__(self, id_: str) -> bool:
        return id_ in self._known

    def freezer(self, id_: str) -> Directory | None:
        """Return the freezer of a container that was found before."""
        group = self._known.get(id_)
        return group.directory("freezer") if group else None

    def keep(self, ids: set[str]) -> None:
        """Forget the others; also called where events are looked for, in another thread."""
        for id_ in set(self._known) - ids:
            self._known.pop(id_, None)


@contextmanager
def _log_of(container: Container) -> Iterator[Path]:
    """Give the file of a container's log; turn errors in reading it into one of ours."""
    if not container.native.get("log_path"):
        raise RefusedError("its pod has no folder for logs")
    path = Path(container.native["log_path"])
    try:
        yield path
    except OSError as error:
        raise RefusedError(f"{path} cannot be read here: {error.strerror or error}") from error
