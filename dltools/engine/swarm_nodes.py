"""The engines of the nodes of a Docker Swarm.

A manager knows its nodes, but does not pass requests on to their engines: each must be reached by
an address of its own.
"""

from __future__ import annotations

import os
from typing import Any

from dltools.engine.addresses import Address
from dltools.engine.transport import GoneError, RefusedError, Transport
from dltools.errors import ConfigError, UnavailableError

LABEL = "dltools.host"
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
        manager_address if node.get("ID") == own and not _label(node) else _address(node)
        for node in sorted(nodes, key=_name)
    ]


def _address(node: dict[str, Any]) -> Address:
    name = _name(node)
    url = _label(node)
    if not url:
        is_tls = bool(os.environ.get("DOCKER_TLS_VERIFY") or os.environ.get("DOCKER_CERT_PATH"))
        where = (node.get("Status") or {}).get("Addr") or name
        url = f"tcp://{where}:{_TLS_PORT if is_tls else _PORT}"
    found = Address(url, f"Swarm node {name}", name=name)
    try:
        found.check()
    except ConfigError as error:
        raise ConfigError(f"label {LABEL} of {error}") from error
    return found


def _label(node: dict[str, Any]) -> str:
    return str(((node.get("Spec") or {}).get("Labels") or {}).get(LABEL) or "")


def _name(node: dict[str, Any]) -> str:
    return str((node.get("Description") or {}).get("Hostname") or node.get("ID") or "")
