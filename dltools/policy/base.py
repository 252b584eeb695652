"""What a policy sees and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from dltools.policy.history import Track

State = Mapping[str, Any]
"""A policy's memory between ticks: JSON values only, so that it can be saved and handed on."""


@dataclass(frozen=True, slots=True)
class Node:
    """A host at a tick: its usable CPUs and its jobs, in an order that is always the same.

    A job is a running, unprotected container that has reported progress at least once.
    """

    host: str
    cpus: float
    jobs: tuple[Track, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """All hosts as last seen, when host `ticked` has just been sampled at `now` (microseconds)."""

    now: int
    ticked: str
    nodes: Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a job gets: a share of its node, its class and the reason, with the numbers.

    `share` is in (0, 1]; 1 takes the limit off; None leaves the setting as it is.
    """

    share: float | None
    job_class: str
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy's answer for the host that ticked: a grant per job id, and what it must remember.

    `next_s` is how many seconds from now it will decide anew, None where it never will.
    """

    grants: Mapping[str, Grant]
    state: State = field(default_factory=dict)
    next_s: float | None = None


@runtime_checkable
class Policy(Protocol):
    """A scheduler. `parameters` is a frozen dataclass made of `parameters.parameter` fields."""

    name: str
    help: str
    parameters: type[Any]

    def horizon_s(self, parameters: Any, state: State) -> float:
        """Return how many seconds of history a later decision may look at."""

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        """Decide for the host that ticked. The same arguments give the same decision."""
