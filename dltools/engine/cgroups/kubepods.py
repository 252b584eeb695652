"""The containers of Kubernetes' pods on this node, by their cgroups and their links to logs.

Nothing is changed: the kubelet and the runtime keep records of their own. What a container is
called stands in the name of its link in /var/log/containers: POD_NAMESPACE_CONTAINER-ID.log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

from dltools.engine.cgroups.cgroup_engine import CgroupEngine, Naming
from dltools.engine.cgroups.cgroup_tree import Process
from dltools.engine.interface import Capabilities, Container, GoneError, LogFlow, RefusedError
from dltools.engine.kernel_files import ROOT
from dltools.engine.log_files import FollowedFile, read_log

PATTERNS = (
    "/kubepods/pod*/*",
    "/kubepods/*/pod*/*",
    "/kubepods.slice/kubepods-pod*/*.scope",
    "/kubepods.slice/*/kubepods-*-pod*/*.scope",
)
"""Where containers of pods are: with the driver cgroupfs, and with systemd's."""

LINKS = "var/log/containers"
_ID = re.compile(r"(?:^|-)([0-9a-f]{64})(?:\.scope)?$")
_LINK = re.compile(r"([^_]+)_([^_]+)_(.+)-([0-9a-f]{64})\.log")
_POD = re.compile(r"pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12}|[0-9a-f]{32})")
_WHY = "containers of pods can only be looked at here"
_NOTHING = Capabilities(frozenset(), pauses=False, creates=False, why=_WHY)
_PREFIX = "io.kubernetes."


class KubepodsEngine(CgroupEngine):
    """The containers of this node's pods. It can only be looked at."""

    kind = "kubepods"

    def __init__(self, root: Path = ROOT, logs: Mapping[str, Sequence[str]] | None = None) -> None:
        self._links: dict[str, tuple[Path, Naming]] = {}
        super().__init__(PATTERNS, root, logs)

    def owner(self, path: str) -> str | None:
        """Return whose a cgroup is that is no container of a pod, or a pod's own."""
        id_ = container_id(path)
        return None if "*" in path or (id_ and self._link(id_)) else "no containers"

    def naming(self, path: str, processes: Sequence[Process]) -> Naming:
        """Return NAMESPACE/POD/CONTAINER, and what Kubernetes calls them as labels."""
        known = self._link(container_id(path) or "")
        if known is None:
            return Naming(path.lstrip("/"))
        naming = known[1]
        if match := _POD.search(path):
            uid = {f"{_PREFIX}pod.uid": match[1].replace("_", "-")}
            return Naming(naming.name, {**naming.labels, **uid})
        return naming

    def identity(self, path: str) -> str | None:
        """Return the runtime's id of a container, None where it is a pod's own or gone."""
        id_ = container_id(path)
        return id_ if id_ and self._link(id_) and self._tree.at(path) else None

    def can(self, path: str) -> Capabilities:
        """Return that nothing can be done."""
        return _NOTHING

    def can_at_all(self) -> Capabilities:
        """Return that nothing can be done."""
        return _NOTHING

    def why(self, limits: Set[str], *, pauses: bool) -> str:
        """Return a sentence that says why nothing can be done."""
        return _WHY

    def pause(self, id_: str) -> None:
        """Refuse."""
        raise _refused()

    def unpause(self, id_: str) -> None:
        """Refuse."""
        raise _refused()

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        """Yield what a container has logged since a time (seconds since 1970), as it comes."""
        with self._readable(container) as path:
            yield from read_log(path, since)

    def follow(self, container: Container, since: float, *, is_new_only: bool = False) -> LogFlow:
        """Return a container's log as it comes, until it exits."""
        where = container.cgroup_path

        def has_ended() -> bool:
            return not self._tree.processes(where)

        with self._readable(container) as path:
            return FollowedFile(path, since, has_ended, is_new_only=is_new_only)

    @contextmanager
    def _readable(self, container: Container) -> Iterator[Path]:
        """Give the file of a container's log; turn errors in reading it into one of ours."""
        known = self._link(container.id)
        if known is None:
            raise GoneError(f"{container.name} has no log in /{LINKS}")
        try:
            yield known[0]
        except OSError as error:
            reason = error.strerror or error
            raise RefusedError(f"{known[0]} cannot be read here: {reason}") from error

    def _link(self, id_: str) -> tuple[Path, Naming] | None:
        """Return the link to a container's log, and what it says of it; None where there is
        none, as for a pod's own container."""
        if id_ and id_ not in self._links:
            folder = self._tree.root / LINKS
            for path in folder.glob("*.log"):
                if match := _LINK.fullmatch(path.name):
                    pod, namespace, name, found = match.groups()
                    labels = {
                        f"{_PREFIX}pod.name": pod,
                        f"{_PREFIX}pod.namespace": namespace,
                        f"{_PREFIX}container.name": name,
                    }
                    self._links[found] = path, Naming(f"{namespace}/{pod}/{name}", labels)
        return self._links.get(id_)


def container_id(path: str) -> str | None:
    """Return the id of the container whose cgroup is at a path, None where it has none."""
    match = _ID.search(path.rpartition("/")[2])
    return match[1] if match else None


def _refused() -> RefusedError:
    return RefusedError(_WHY)
