"""What a policy asks for, what it sees and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from dltools.plan.policy.container_history import Track

State = Mapping[str, Any]
"""A policy's memory between rounds: JSON values only, so that it can be saved and handed on."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a policy asks for.

    A round is every `itval_s` seconds (None: only when a job arrives or leaves, which always makes
    one); `longest_s` is how far the interval may be doubled while nothing changes. `windows` is how
    many intervals back it looks, `curves` whether it predicts learning curves, `targets` whether a
    job that meets a target makes a round, `cluster` whether it looks at other hosts.
    """

    itval_s: float | None = None
    longest_s: float = 0.0
    windows: int = 0
    curves: bool = False
    targets: bool = False
    cluster: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """What a job gets: a share of its node, its class and the reason, with the numbers.

    `share` is in (0, 1]; 1 takes the limit off; None leaves the setting as it is. `signal` and
    `prediction` are what it was judged by, in a few words, for people. A job of which too little is
    known to judge it is `free`: no limit and the default weight, whatever its share. Where jobs
    stand in line, those of a higher `rank` stand behind, whatever their shares: who has converged
    stands behind who still grows.
    """

    share: float | None
    job_class: str
    reason: str
    signal: str = ""
    prediction: str = ""
    free: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A host at a tick: its usable CPUs and its jobs, in an order that is always the same.

    A job is a running, unprotected container that has reported progress at least once. `last` has
    the grants of the round before, by job id; newcomers, restarted ones too, are not in it.
    """

    host: str
    cpus: float
    jobs: tuple[Track, ...]
    last: Mapping[str, Grant] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All hosts as last seen, when host `ticked` has just been sampled at `now` (microseconds).

    `itval_s` is the interval in force there, in seconds.
    """

    now: int
    ticked: str
    nodes: Mapping[str, Node]
    itval_s: float = 0.0

    @property
    def node(self) -> Node:
        """The host that ticked."""
        return self.nodes[self.ticked]


class Deed(StrEnum):
    """What a policy can order beside shares."""

    MIGRATE = "migrate"
    DELIVER = "deliver"


@dataclass(frozen=True, slots=True)
class Order:
    """Something to be done once: a job that moves to the host `to`, or is delivered."""

    deed: Deed
    job_id: str
    reason: str
    to: str = ""


class Pace(StrEnum):
    """What becomes of the interval after a round."""

    KEEP = "keep"
    DOUBLE = "double"  # nothing changes: look less often
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy's answer for the host that ticked: a grant per job id, what is to be done once, and
    what it must remember. `gain` says in one line what the plan is expected to bring."""

    grants: Mapping[str, Grant]
    state: State = field(default_factory=dict)
    pace: Pace = Pace.KEEP
    orders: tuple[Order, ...] = ()
    gain: str = ""


@runtime_checkable
class Policy(Protocol):
    """A scheduler. `parameters` is a frozen dataclass made of `parameters.parameter` fields."""

    name: str
    help: str
    parameters: type[Any]

    def needs(self, parameters: Any) -> Needs:
        """Return what the policy asks for."""

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        """Decide a round for the host that ticked. The same arguments give the same decision."""
