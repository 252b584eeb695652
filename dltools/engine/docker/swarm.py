"""Docker Swarm: its services, as a manager's engine shows and changes them, and its nodes.

A manager knows its nodes, but does not pass requests on to their engines: each must be reached by
an address of its own.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from typing import Any, Unpack

from dltools.engine.address import Address
from dltools.engine.docker.addresses import check
from dltools.engine.docker.http import Transport, quoted
from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.services import Node, Service, ServiceChange, Task
from dltools.errors import ConfigError, UnavailableError
from dltools.notation.times import time_or_none

SERVICE = "com.docker.swarm.service.id"
"""The label of a task's container that names its service."""

_BAD_STATES = ("failed", "rejected", "orphaned")
_ENDED = (*_BAD_STATES, "complete", "shutdown", "remove", "")
"""What has become of a task that has ended; of "" nothing is known."""


class Swarm:
    """A manager's view of its Swarm. Methods raise as `Engine`'s do."""

    def __init__(self, transport: Transport) -> None:
        """Use the connection to a manager's engine."""
        self._transport = transport

    def service(self, id_: str) -> Service:
        """Return one service, by id or name."""
        return _service(self._raw(id_))

    def _raw(self, id_: str) -> Mapping[str, Any]:
        service: Mapping[str, Any] = self._transport.json("GET", f"/services/{quoted(id_)}")
        return service

    def tasks(self, service_id: str) -> list[Task]:
        """Return the tasks that the manager remembers of a service, also those that have ended."""
        filters = json.dumps({"service": [service_id]})
        tasks = self._transport.json("GET", "/tasks", {"filters": filters}) or []
        return [_task(task) for task in tasks]

    def node(self, id_: str) -> Node:
        """Return one node."""
        node: Mapping[str, Any] = self._transport.json("GET", f"/nodes/{quoted(id_)}")
        state, spec = node.get("Status") or {}, node.get("Spec") or {}
        return Node(
            str(state.get("State")),
            str(spec.get("Availability")),
            lambda constraint: contradicts(constraint, node),
        )

    def change(self, id_: str, **wanted: Unpack[ServiceChange]) -> None:
        """Change a service, unless it is so already."""
        for attempts_left in (2, 1, 0):
            raw = self._raw(id_)
            service, spec = _service(raw), copy.deepcopy(dict(raw["Spec"]))
            if "replicas" in wanted:
                spec["Mode"]["Replicated"]["Replicas"] = wanted["replicas"]
            constraints = wanted.get("constraints", service.constraints)
            if tuple(constraints) != service.constraints:
                placement = spec["TaskTemplate"].get("Placement") or {}
                spec["TaskTemplate"]["Placement"] = {**placement, "Constraints": [*constraints]}
            merged = {**service.labels, **wanted.get("labels", {})}
            kept = {name: value for name, value in merged.items() if value is not None}
            if kept != service.labels:
                spec["Labels"] = kept
            if spec == raw["Spec"]:
                return
            path = f"/services/{quoted(service.id)}/update"
            try:
                self._transport.json("POST", path, {"version": raw["Version"]["Index"]}, spec)
            except RefusedError as error:  # somebody else, or Swarm, has changed it meanwhile
                if "out of sequence" not in str(error) or not attempts_left:
                    raise
            else:
                return


def _service(raw: Mapping[str, Any]) -> Service:
    spec = raw["Spec"]
    mode = spec.get("Mode") or {}
    replicated = mode.get("Replicated")
    placement = (spec.get("TaskTemplate") or {}).get("Placement") or {}
    return Service(
        raw["ID"],
        spec["Name"],
        time_or_none(raw.get("UpdatedAt")),
        None if replicated is None else int(replicated.get("Replicas", 1)),
        ", ".join(mode).lower(),
        dict(spec.get("Labels") or {}),
        tuple(placement.get("Constraints") or ()),
    )


def _task(raw: Mapping[str, Any]) -> Task:
    status = raw.get("Status") or {}
    state = status.get("State") or ""
    return Task(
        node_id=raw.get("NodeID") or "",
        state=state,
        error=status.get("Err") or "",
        created=time_or_none(raw.get("CreatedAt")),
        container_id=(status.get("ContainerStatus") or {}).get("ContainerID") or "",
        is_live=state not in _ENDED,
        has_failed=state in _BAD_STATES,
    )


def contradicts(constraint: str, node: Mapping[str, Any]) -> bool:
    """Tell whether a placement constraint forbids a node, which is in Docker's words. One of a kind
    that is unknown forbids none."""
    for operator, is_equal in (("!=", False), ("==", True)):
        key, sign, wanted = constraint.partition(operator)
        if sign:
            value = _value(key.strip(), node)
            return value is not None and (value.lower() == wanted.strip().lower()) is not is_equal
    return False


def _value(key: str, node: Mapping[str, Any]) -> str | None:
    """Return what a node has for the key of a constraint, None for a key that is unknown."""
    spec, said = node.get("Spec") or {}, node.get("Description") or {}
    platform = said.get("Platform") or {}
    facts = {
        "node.id": node.get("ID"),
        "node.hostname": said.get("Hostname"),
        "node.role": spec.get("Role"),
        "node.platform.os": platform.get("OS"),
        "node.platform.arch": platform.get("Architecture"),
    }
    if key in facts:
        return str(facts[key] or "")
    engine = said.get("Engine") or {}
    named = {"node.labels.": spec.get("Labels"), "engine.labels.": engine.get("Labels")}
    for prefix, labels in named.items():
        if key.startswith(prefix):
            return str((labels or {}).get(key.removeprefix(prefix), ""))
    return None


HOST_LABEL = "dltools.host"
"""The label of a node that gives the address of its engine."""

_PORT, _TLS_PORT = 2375, 2376


def node_addresses(manager: Transport, manager_address: Address) -> list[Address]:
    """Return the address of the engine of each node of the Swarm that an engine manages.

    It is the node's label dltools.host, else the node's IP address with Docker's port for TCP, or
    for TLS where DOCKER_TLS_VERIFY is set. Raises `UnavailableError` if the engine manages none.
    """
    try:
        nodes = manager.json("GET", "/nodes")
        own = manager.json("GET", "/info").get("Swarm", {}).get("NodeID")
    except (RefusedError, GoneError) as error:
        raise UnavailableError(f"--swarm: {error}") from error
    return [
        manager_address if node.get("ID") == own and not _host_label(node) else _node_address(node)
        for node in sorted(nodes, key=_node_name)
    ]


def _node_address(node: dict[str, Any]) -> Address:
    name = _node_name(node)
    url = _host_label(node)
    if not url:
        is_tls = bool(os.environ.get("DOCKER_TLS_VERIFY") or os.environ.get("DOCKER_CERT_PATH"))
        where = (node.get("Status") or {}).get("Addr") or name
        url = f"tcp://{where}:{_TLS_PORT if is_tls else _PORT}"
    address = Address(url, f"Swarm node {name}", name=name)
    try:
        check(address)
    except ConfigError as error:
        raise ConfigError(f"label {HOST_LABEL} of {error}") from error
    return address


def _host_label(node: dict[str, Any]) -> str:
    return str(((node.get("Spec") or {}).get("Labels") or {}).get(HOST_LABEL) or "")


def _node_name(node: dict[str, Any]) -> str:
    return str((node.get("Description") or {}).get("Hostname") or node.get("ID") or "")
