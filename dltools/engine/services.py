"""Services of a Docker Swarm, as a manager's engine shows and changes them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from dltools.engine.transport import RefusedError, Transport
from dltools.notation.times import parse_time

SERVICE = "com.docker.swarm.service.id"
"""The label of a task's container that names its service."""

PLACED = "dltools.placed"
"""The label of a service that names the placement constraint which dl-apply has given it."""

LIVE_STATES = (
    "new",
    "pending",
    "assigned",
    "accepted",
    "preparing",
    "ready",
    "starting",
    "running",
)
"""What a task goes through until it ends."""

BAD_STATES = ("failed", "rejected", "orphaned")


@dataclass(frozen=True, slots=True)
class Service:
    """A service as its manager describes it; `spec` is what a user has asked for."""

    id: str
    name: str
    version: int
    updated: datetime | None
    spec: Mapping[str, Any]

    @property
    def replicas(self) -> int | None:
        """How many tasks it is to have, None for a service of another mode."""
        found = (self.spec.get("Mode") or {}).get("Replicated")
        return None if found is None else int(found.get("Replicas", 1))

    @property
    def mode(self) -> str:
        """Its mode in words, such as replicated or global."""
        return ", ".join(self.spec.get("Mode") or {}).lower()

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the service itself."""
        return dict(self.spec.get("Labels") or {})

    @property
    def constraints(self) -> tuple[str, ...]:
        """Where its tasks may run: such as node.id==abc."""
        placement = (self.spec.get("TaskTemplate") or {}).get("Placement") or {}
        return tuple(placement.get("Constraints") or ())


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a service: `state` is the manager's word, `error` why it is not well, and
    `container_id` "" before it has one."""

    node_id: str
    state: str
    error: str
    created: datetime | None
    container_id: str

    @property
    def is_live(self) -> bool:
        """Whether it has not ended yet."""
        return self.state in LIVE_STATES


class Swarm:
    """A manager's view of its Swarm. Methods raise as `Engine`'s do."""

    def __init__(self, transport: Transport) -> None:
        """Use the connection to a manager's engine."""
        self._transport = transport

    def service(self, id_: str) -> Service:
        """Return one service, by id or name."""
        raw = self._transport.json("GET", f"/services/{quote(id_, safe='')}")
        return Service(
            raw["ID"],
            raw["Spec"]["Name"],
            raw["Version"]["Index"],
            _time(raw.get("UpdatedAt")),
            raw["Spec"],
        )

    def tasks(self, service_id: str) -> list[Task]:
        """Return the tasks that the manager remembers of a service, also those that have ended."""
        filters = json.dumps({"service": [service_id]})
        found = self._transport.json("GET", "/tasks", {"filters": filters}) or []
        return [_task(one) for one in found]

    def node(self, id_: str) -> Mapping[str, Any]:
        """Return one node, in Docker's words."""
        found: Mapping[str, Any] = self._transport.json("GET", f"/nodes/{quote(id_, safe='')}")
        return found

    def change(
        self,
        id_: str,
        *,
        replicas: int | None = None,
        constraints: Sequence[str] | None = None,
        labels: Mapping[str, str | None] | None = None,
    ) -> None:
        """Change what is not None of a service, unless it is so already. A label that is None is
        removed, and others stay."""
        for attempts_left in (2, 1, 0):
            service = self.service(id_)
            spec = copy.deepcopy(dict(service.spec))
            if replicas is not None:
                spec["Mode"]["Replicated"]["Replicas"] = replicas
            if constraints is not None and tuple(constraints) != service.constraints:
                placement = spec["TaskTemplate"].get("Placement") or {}
                spec["TaskTemplate"]["Placement"] = {**placement, "Constraints": [*constraints]}
            merged = {**service.labels, **(labels or {})}
            kept = {name: value for name, value in merged.items() if value is not None}
            if kept != service.labels:
                spec["Labels"] = kept
            if spec == service.spec:
                return
            path = f"/services/{quote(service.id, safe='')}/update"
            try:
                self._transport.json("POST", path, {"version": service.version}, spec)
            except RefusedError as error:  # somebody else, or Swarm, has changed it meanwhile
                if "out of sequence" not in str(error) or not attempts_left:
                    raise
            else:
                return


def _task(raw: Mapping[str, Any]) -> Task:
    status = raw.get("Status") or {}
    return Task(
        node_id=raw.get("NodeID") or "",
        state=status.get("State") or "",
        error=status.get("Err") or "",
        created=_time(raw.get("CreatedAt")),
        container_id=(status.get("ContainerStatus") or {}).get("ContainerID") or "",
    )


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


def contradicts(constraint: str, node: Mapping[str, Any]) -> bool:
    """Tell whether a placement constraint forbids a node, which is in Docker's words. One of a kind
    that is unknown forbids none."""
    for operator, is_equal in (("!=", False), ("==", True)):
        key, found, wanted = constraint.partition(operator)
        if found:
            value = _value(key.strip(), node)
            return value is not None and (value.lower() == wanted.strip().lower()) is not is_equal
    return False


def _value(key: str, node: Mapping[str, Any]) -> str | None:
    """Return what a node has for the key of a constraint, None for a key that is unknown."""
    spec, said = node.get("Spec") or {}, node.get("Description") or {}
    platform = said.get("Platform") or {}
    known = {
        "node.id": node.get("ID"),
        "node.hostname": said.get("Hostname"),
        "node.role": spec.get("Role"),
        "node.platform.os": platform.get("OS"),
        "node.platform.arch": platform.get("Architecture"),
    }
    if key in known:
        return str(known[key] or "")
    engine = said.get("Engine") or {}
    named = {"node.labels.": spec.get("Labels"), "engine.labels.": engine.get("Labels")}
    for prefix, labels in named.items():
        if key.startswith(prefix):
            return str((labels or {}).get(key.removeprefix(prefix), ""))
    return None
