"""The interface of policies: what a policy requires, what it sees, and what it decides.

This is the public API of plug-ins. Anything that this list does not name may change:

- the names in `__all__` below;
- `dltools.plan.policy.parameters.parameter` declares a parameter;
- `dltools.plan.policy.shares.queue_shares` shares a host among jobs in order;
- `dltools.plan.signals.growth.growth` says how fast a job grows (with `Requirements.windows` of 2);
- `dltools.plan.signals.prediction.refit` and `dltools.plan.signals.prediction.remaining` say what a
  job still needs (with `Requirements.curves`): `refit` is called once in a round, before the other.

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
    """What a policy requires.

    `interval_s`: seconds between two rounds; None: rounds only when a job arrives or leaves, which
    always starts one.
    `longest_interval_s`: how far the interval may be doubled while nothing changes.
    `windows`: how many intervals back the policy looks.
    `curves`: whether it predicts learning curves.
    `targets`: whether a job that meets a target starts a round.
    `cluster`: whether it looks at other hosts.
    `shares`: whether it gives shares; if not, every realisation gives the same plan.
    `silent_jobs`: whether jobs that have reported nothing yet compete with the others.
    `servers`: whether servers are jobs too; else it sees trainings alone, and touches no server.
    `users`: whether it shares a host among users itself; for other policies `by_user` can do so.
    `efforts`: whether it compares jobs by progress per effort. Such a policy is asked once for the
    jobs on CPUs and once for each group that shares devices (see `by_resource`), and its state for
    a host is a mapping by run.
    """

    interval_s: float | None = None
    longest_interval_s: float = 0.0
    windows: int = 0
    curves: bool = False
    targets: bool = False
    cluster: bool = False
    shares: bool = True
    silent_jobs: bool = True
    servers: bool = False
    efforts: bool = False
    users: bool = False


@dataclass(frozen=True, slots=True)
class JobClass:
    """A class that a policy puts jobs into.

    `name` stands in plans and tables, `word` in reasons, `meaning` in the manual.
    """

    name: str
    word: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a job gets: a share of its host, its class and the reason, with the numbers.

    `share` is in (0, 1]; 1 removes the limit; None leaves the setting as it is.
    `signal` and `prediction` say in a few words what the job was judged by.
    `unlimited`: too little is known to judge the job. It gets no quota and the default weight,
    whatever its share.
    `rank`: where jobs queue, those of a higher rank stand behind, whatever their shares. A job
    that has converged stands behind one that still grows.
    `factor`: how many times as much as it had lately a job is to have, where its response times
    tell that better than its use of the resource does; None elsewhere.
    """

    share: float | None
    job_class: str
    reason: str
    signal: str = ""
    prediction: str = ""
    unlimited: bool = False
    rank: int = 0
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class HostState:
    """A host at a sample: its usable CPUs and its jobs, always in the same order.

    If a policy is asked only for jobs that share devices, `cpus` is the number of these.

    A job is a running training (or server, where the policy requires `servers`) that may be touched
    and has reported progress at least once. `previous` holds the allocations of the round before,
    by job id; new and restarted jobs are not in it.
    `sampled_at`: the time of its newest sample (microseconds), None where that does not matter.
    `is_contested`: whether its CPUs are all busy; `busy_share`: the share of its CPUs that is busy;
    `others`: the share of its CPUs that programs use that are not jobs; None where unknown.
    `jobs_elsewhere`: jobs that also have containers on other hosts. `cannot`: what its engine can
    do with no container, such as move.
    """

    name: str
    cpus: float
    jobs: tuple[Job, ...]
    previous: Mapping[str, Allocation] = field(default_factory=dict)
    sampled_at: int | None = None
    is_contested: bool | None = None
    busy_share: float | None = None
    jobs_elsewhere: frozenset[str] = frozenset()
    others: float | None = None
    cannot: frozenset[str] = frozenset()

    def part(self, cpus: float, jobs: Iterable[Job]) -> HostState:
        """Return a part of the host, as if it were one: so many CPUs, or devices, and some jobs."""
        ids = {job.id for job in jobs}
        own = tuple(job for job in self.jobs if job.id in ids)
        previous = {key: allocation for key, allocation in self.previous.items() if key in ids}
        return replace(self, cpus=cpus, jobs=own, previous=previous)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All hosts, each at its newest sample.

    `sampled` names the host that has just been sampled, at `now` (microseconds); `interval_s` is
    the interval in force there, in seconds.
    """

    now: int
    sampled: str
    hosts: Mapping[str, HostState]
    interval_s: float = 0.0

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
    """An order that is carried out once: migrate a job to the host `to`, or deliver its model,
    which has met the target `met`."""

    kind: ActionKind
    job_id: str
    reason: str
    to: str = ""
    met: TargetMet | None = None


class IntervalChange(StrEnum):
    """How the interval changes after a round."""

    KEEP = "keep"
    DOUBLE = "double"  # nothing changes: look less often
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy's decision for the host that has just been sampled.

    `allocations` are by job id; `actions` are done once; `state` is what the policy must remember;
    `gain` says in one line what the plan is expected to bring.
    """

    allocations: Mapping[str, Allocation]
    state: State = field(default_factory=dict)
    interval_change: IntervalChange = IntervalChange.KEEP
    actions: tuple[JobAction, ...] = ()
    gain: str = ""


@runtime_checkable
class Policy(Protocol):
    """A scheduler. `parameters` is a frozen dataclass made of `parameters.parameter` fields.

    A policy may have an attribute `classes`, a tuple of `JobClass`: those that it puts jobs into.
    """

    name: str
    help: str
    parameters: type[Any]

    def requirements(self, parameters: Any) -> Requirements:
        """Return what the policy requires."""

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        """Decide a round for the host sampled last. The same arguments give the same decision."""


def classes_of(policy: Policy) -> tuple[JobClass, ...]:
    """Return the classes that a policy puts jobs into, () where it names none."""
    classes: tuple[JobClass, ...] = getattr(policy, "classes", ())
    return classes
