"""What an engine says of the services of its cluster, and how they are changed.

A manager of a Swarm has services with tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Service:
    """A service, of which tasks run on the nodes of a cluster. `replicas` is how many tasks it is
    to have, None in another `mode` than replicated; `constraints` say where, such as
    node.id==abc."""

    id: str
    name: str
    updated: datetime | None
    replicas: int | None
    mode: str
    labels: Mapping[str, str]
    constraints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a service: `state` is the manager's word, `error` why it is not well, and
    `container_id` "" before it has one. `is_live`: it has not ended. `has_failed`: it ended
    badly."""

    node_id: str
    state: str
    error: str
    created: datetime | None
    container_id: str
    is_live: bool
    has_failed: bool


class Node(NamedTuple):
    """A node of a cluster: its state and availability in the manager's words, and whether a
    constraint of a service forbids it."""

    state: str
    availability: str
    is_forbidden_by: Callable[[str], bool]


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
