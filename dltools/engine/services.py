"""What an engine says of the services of its cluster, and how they are changed.

A manager of a Swarm has services with tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol, TypedDict, Unpack, runtime_checkable


@dataclass(frozen=True, slots=True)
class Service:
    """A service, of which tasks run on the nodes of a cluster."""

    id: str
    """What the cluster calls it."""

    name: str
    """What people call it."""

    updated: datetime | None
    """When it was last changed, None where the manager does not say."""

    replicas: int | None
    """How many tasks it is to have, None in another mode than replicated."""

    mode: str
    """The manager's word."""

    labels: Mapping[str, str]
    """Its labels, by name."""

    constraints: tuple[str, ...]
    """Where its tasks may run, such as node.id==abc."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a service."""

    node_id: str
    """The id of the node that it is meant for, "" before it has one."""

    state: str
    """The manager's word."""

    error: str
    """Why it is not well."""

    created: datetime | None
    """When it was made, None where the manager does not say."""

    container_id: str
    """That of its container, "" before it has one."""

    is_live: bool
    """Whether it has not ended."""

    has_failed: bool
    """Whether it ended badly."""


class Node(NamedTuple):
    """A node of a cluster."""

    state: str
    """The manager's word."""

    availability: str
    """The manager's word."""

    is_forbidden_by: Callable[[str], bool]
    """Tells whether a constraint of a service forbids it."""


class ServiceChange(TypedDict, total=False):
    """What is to change of a service; what is left out stays. A label that is None is removed, and
    others stay."""

    replicas: int
    constraints: Sequence[str]
    labels: Mapping[str, str | None]


@runtime_checkable
class Services(Protocol):
    """The services of a cluster, which its manager shows and changes: a part of an engine. Methods
    raise as `Engine`'s do."""

    def service(self, id_: str) -> Service:
        """Return one service, by id or name."""

    def tasks(self, service_id: str) -> list[Task]:
        """Return the tasks that the manager remembers of a service, also those that have ended."""

    def node(self, id_: str) -> Node:
        """Return one node."""

    def change(self, id_: str, **wanted: Unpack[ServiceChange]) -> None:
        """Change a service, unless it is so already."""
