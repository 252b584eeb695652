"""The interface of policies: what a policy requires, what it sees, and what it decides.

This is the public API of plug-ins. Anything that this list does not name may change:

- the names in `__all__` below;
- `dltools.plan.policy.parameters.parameter` declares a parameter;
- `dltools.plan.policy.shares.queue_shares` shares a host among jobs in order;
- `dltools.plan.signals.growth.growth` says how fast a job grows (with `Requirements.windows` of 2);
- `dltools.plan.signals.remaining_effort.refit` and
  `dltools.plan.signals.remaining_effort.remaining` say what a job still needs (with
  `Requirements.curves`): `refit` is called once in a round, before the other.

`Job` says of each of its attributes what it is, and what is public of those that have parts.

A plug-in names an object with the attributes of `Policy` in the entry-point group dltools.policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from dltools.observations.targets import TargetMet
from dltools.plan.signals.job import Job

__all__ = [
    "ActionKind",
    "Allocation",
    "Cluster",
    "Decision",
    "HostState",
    "IntervalChange",
    "Job",
    "JobAction",
    "JobClass",
    "Policy",
    "Requirements",
    "State",
    "TargetMet",
]

State = Mapping[str, Any]
"""A policy's memory between rounds: JSON values only, so that it can be saved and handed on."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a policy requires."""

    interval_s: float | None = None
    """Seconds between two rounds; None: rounds only when a job arrives or leaves, which always
    starts one."""

    longest_interval_s: float = 0.0
    """How far the interval may be doubled while nothing changes (s)."""

    windows: int = 0
    """How many intervals back the policy looks."""

    curves: bool = False
    """Whether it predicts learning curves."""

    targets: bool = False
    """Whether a job that meets a target starts a round."""

    cluster: bool = False
    """Whether it looks at other hosts."""

    shares: bool = True
    """Whether it gives shares; if not, every realisation gives the same plan."""

    silent_jobs: bool = True
    """Whether jobs that have reported nothing yet compete with the others."""

    servers: bool = False
    """Whether servers are jobs too; else it sees trainings alone, and touches no server."""

    efforts: bool = False
    """Whether it compares jobs by progress per effort. Such a policy is asked once for the jobs on
    CPUs and once for each group that shares devices (see `by_resource`), and its state for a host
    is a mapping by run."""

    users: bool = False
    """Whether it shares a host among users itself; for other policies `by_user` can do so."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """A class that a policy puts jobs into."""

    name: str
    """What plans and tables call it."""

    word: str
    """What reasons call it."""

    meaning: str
    """What the manual says of it."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a job gets, and why."""

    share: float | None
    """Of its host, in (0, 1]; 1 removes the limit; None leaves the setting as it is."""

    job_class: str
    """Its class, - for none."""

    reason: str
    """Why, with the numbers."""

    signal: str = ""
    """What the job was judged by, in a few words; "" for nothing."""

    prediction: str = ""
    """What was predicted of it, in a few words; "" for nothing."""

    unlimited: bool = False
    """Whether too little is known to judge the job. It gets no quota and the default weight,
    whatever its share."""

    rank: int = 0
    """Where jobs queue, those of a higher rank stand behind, whatever their shares. A job that has
    converged stands behind one that still grows."""

    factor: float | None = None
    """How many times as much as it had lately a job is to have, where its response times tell that
    better than its use of the resource does; None elsewhere."""


@dataclass(frozen=True, slots=True)
class HostState:
    """A host at a sample.

    A job is a running training (or server, where the policy requires `servers`) that may be touched
    and has reported progress at least once.
    """

    name: str
    """What its rows call it."""

    cpus: float
    """Its usable CPUs; the number of devices, if a policy is asked only for jobs that share
    these."""

    jobs: tuple[Job, ...]
    """Its jobs, always in the same order."""

    previous: Mapping[str, Allocation] = field(default_factory=dict)
    """The allocations of the round before, by job id; new and restarted jobs are not in it."""

    sampled_at: int | None = None
    """The time of its newest sample (microseconds), None where that does not matter."""

    is_contested: bool | None = None
    """Whether its CPUs are all busy, None where unknown."""

    busy_share: float | None = None
    """The share of its CPUs that is busy, 0 to 1; None where unknown."""

    jobs_elsewhere: frozenset[str] = frozenset()
    """Jobs that also have containers on other hosts."""

    others: float | None = None
    """The share of its CPUs that programs use that are not jobs, 0 to 1; None where unknown."""

    cannot: frozenset[str] = frozenset()
    """What its engine can do with no container, such as move."""

    def part(self, cpus: float, jobs: Iterable[Job]) -> HostState:
        """Return a part of the host, as if it were one: so many CPUs, or devices, and some jobs."""
        ids = {job.id for job in jobs}
        own = tuple(job for job in self.jobs if job.id in ids)
        previous = {key: allocation for key, allocation in self.previous.items() if key in ids}
        return replace(self, cpus=cpus, jobs=own, previous=previous)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All hosts, each at its newest sample. One has just been sampled."""

    now: int
    """The time of that sample (microseconds)."""

    sampled: str
    """The name of that host."""

    hosts: Mapping[str, HostState]
    """The hosts, by name."""

    interval_s: float = 0.0
    """The interval in force there (s)."""

    @property
    def host(self) -> HostState:
        """The host that has just been sampled."""
        return self.hosts[self.sampled]


class ActionKind(StrEnum):
    """What a policy can order for a job besides a share."""

    MIGRATE = "migrate"
    DELIVER = "deliver"


@dataclass(frozen=True, slots=True)
class JobAction:
    """An order that is carried out once."""

    kind: ActionKind
    """Whether to migrate the job, or to deliver its model."""

    job_id: str
    """The id of the job."""

    reason: str
    """Why, with the numbers."""

    to: str = ""
    """The host that the job migrates to, "" for a delivery."""

    met: TargetMet | None = None
    """The target that the model has met, None for a migration."""


class IntervalChange(StrEnum):
    """How the interval changes after a round."""

    KEEP = "keep"
    DOUBLE = "double"  # nothing changes: look less often
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy's decision for the host that has just been sampled."""

    allocations: Mapping[str, Allocation]
    """What jobs get, by job id."""

    state: State = field(default_factory=dict)
    """What the policy must remember."""

    interval_change: IntervalChange = IntervalChange.KEEP
    """What becomes of the interval between rounds."""

    actions: tuple[JobAction, ...] = ()
    """Orders that are carried out once."""

    gain: str = ""
    """What the plan is expected to bring, in one line; "" where nothing is said."""


@runtime_checkable
class Policy(Protocol):
    """A scheduler.

    A policy may have an attribute `classes`, a tuple of `JobClass`: those that it puts jobs into.
    """

    name: str
    """What --policy calls it."""

    help: str
    """What it does, in a few words."""

    parameters: type[Any]
    """A frozen dataclass made of `parameters.parameter` fields."""

    def requirements(self, parameters: Any) -> Requirements:
        """Return what the policy requires."""

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        """Decide a round for the host sampled last. The same arguments give the same decision."""


def classes_of(policy: Policy) -> tuple[JobClass, ...]:
    """Return the classes that a policy puts jobs into, () where it names none."""
    classes: tuple[JobClass, ...] = getattr(policy, "classes", ())
    return classes
