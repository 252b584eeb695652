"""SpeCon's migrations: which job moves where, whether it is worth the pause, and what was ordered.

The choice of source, candidate and target is our reconstruction. So is that a job moves once, and
that an order which is not carried out is given again ever later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from dltools.notation.times import MICRO, format_seconds
from dltools.plan.policy.interface import Cluster, HostState
from dltools.plan.policy.parameters import parameter, seconds
from dltools.plan.signals.growth import cpu_use
from dltools.plan.signals.job import Job
from dltools.plan.signals.prediction import refit, remaining

PROGRESSING, WATCHING, CONVERGED = "PC", "WC", "CC"
"""Classes of jobs, by their growth."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """SpeCon's parameters."""

    alpha: float = parameter(
        0.1, "part of its best growth under which a job is slow", high=1.0, source="paper"
    )
    itval: float = seconds(10.0, "seconds between two rounds", source="paper")
    cooldown: float = seconds(
        30.0, "seconds after a migration without another", low=0.0, source="paper"
    )
    load: str = parameter(
        "progressing",
        "what makes a host loaded: progressing jobs, jobs, or CPU use",
        choices=("progressing", "jobs", "cpu"),
    )
    pause: float = seconds(18.0, "seconds that a migration takes a job out of training", low=0.0)
    stale: float = seconds(
        60.0, "seconds without a sample after which a host neither gives nor takes a job", low=1.0
    )
    within: str = parameter(
        "none",
        "what each host gives its jobs: no limits (none), or shortest remaining time first (srtf)",
        choices=("none", "srtf"),
    )


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job's record: its best growth efficiency, its class and its newest growth efficiency
    (`growth`). `on_gpu`: growth is per GPU second."""

    best: float = 0.0
    job_class: str = PROGRESSING
    growth: float | None = None
    on_gpu: bool = False


OwnJobs = Mapping[str, KnownJob]
"""The jobs of one host, by run of a container."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The job that is to migrate, None where none is, and why; the host it goes to, and the job
    seconds that this is predicted to save, its cost taken off."""

    why: str
    job: Job | None = None
    target: str = ""
    saves: float = 0.0


class HostLoad(NamedTuple):
    """The load of a host at its last round. Tuples compare field by field, so that the first field
    that differs decides which host is loaded more.

    `first`: the load by the parameter `load`; among equals `jobs`, then `cpu` decide (CPU use as a
    share of the host), then the `name`. `converged` and `free`: how many converged jobs, and how
    many jobs in all, may move.
    """

    first: float
    jobs: int
    cpu: float
    name: str
    progressing: int
    converged: int
    free: int

    def may_give(self, target: HostLoad) -> bool:
        """Tell whether it has a job that may move: a converged one next to a progressing one, or
        any of several where the target is idle."""
        if self.name == target.name:
            return False
        return bool(self.converged and self.progressing) or (
            not target.jobs and self.jobs > 1 and self.free > 0
        )

    def with_jobs(self, more: int, kind: str) -> tuple[float, int]:
        """Return its first two fields after adding `more` converged jobs."""
        first = self.first + more if kind == "jobs" else self.first
        return first, self.jobs + more


def load_of(
    host: HostState, own: OwnJobs, moved: Collection[str], cluster: Cluster, kind: str
) -> HostLoad:
    """Return the load of a host now, with its CPU use in the last interval.

    `kind`: what counts as load (progressing, jobs or cpu). `moved`: names of jobs that must stay.
    """
    interval = round(cluster.interval_s * MICRO)
    classes = {job.id: own.get(job.run_id, _UNKNOWN).job_class for job in host.jobs}
    progressing = sum(one == PROGRESSING for one in classes.values())
    uses = (cpu_use(job, cluster.now, interval, host.cpus) for job in host.jobs)
    cpu = math.fsum(use.share or 0.0 for use in uses)
    free = [job for job in host.jobs if lasting_name(job) not in moved and _can_move(job)]
    by_kind = {"progressing": progressing, "jobs": len(host.jobs), "cpu": cpu}
    return HostLoad(
        first=float(by_kind[kind]),
        jobs=len(host.jobs),
        cpu=cpu,
        name=host.name,
        progressing=progressing,
        converged=sum(classes[job.id] == CONVERGED for job in free),
        free=len(free),
    )


_SWARM_ID = re.compile("[a-z0-9]{25}")


def lasting_name(job: Job) -> str:
    """Return the part of its name that stays when a job continues in another container: of Swarm's
    names SERVICE.SLOT.TASK all but the last part."""
    service, _, task = job.name.rpartition(".")
    return service if "." in service and _SWARM_ID.fullmatch(task) else job.name


def _can_move(job: Job) -> bool:
    return not job.use.uses_gpu and "move" not in job.in_force.cannot


_UNKNOWN = KnownJob()


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses among the jobs of the host sampled last: a plan acts on no other.

    `loads`: the fields of `HostLoad` of each host of known size, by name. `own`: its jobs;
    `moved`: names of jobs that must stay.
    """

    cluster: Cluster
    loads: Mapping[str, Mapping[str, Any]]
    own: OwnJobs
    moved: Collection[str]
    parameters: Parameters

    def choose(self) -> Choice:
        """Return a migration that lowers the heaviest load and saves more than it costs.

        The source is the most loaded host that runs both a converged and a progressing job; the job
        is its converged job that grows least. If the target is idle, the source is the busiest host
        and the job any of its jobs. Where another host is the source, there is none.
        """
        if len(self.loads) < 2:
            return Choice("no migration: no other host is known")
        loads = sorted(HostLoad(**one) for one in self.loads.values())
        target = next((one for one in loads if self._takes_jobs(one.name)), None)
        if target is None:
            return Choice("no migration: no host that takes jobs was sampled of late")
        sources = [one for one in loads if one.may_give(target)]
        if not sources:
            return Choice(f"no migration: {self._why_no_source(loads)}")
        source = next((one for one in sources if one.name == self.cluster.sampled), None)
        if source is None or any(
            one[:3] > source[:3] and self._is_fresh(one.name) for one in sources
        ):
            return Choice("")  # a round of that host will find it
        candidates = self._candidates(is_target_idle=not target.jobs)
        order = sorted(candidates, key=lambda job: (self._of(job).growth or 0.0, job.name, job.id))
        # Its jobs may have changed since its last round.
        return self._weighed(order[0], source, target) if order else Choice("")

    def _takes_jobs(self, name: str) -> bool:
        return self._is_fresh(name) and "move" not in self.cluster.hosts[name].cannot

    def _why_no_source(self, loads: Sequence[HostLoad]) -> str:
        hosts = (self.cluster.hosts.get(one.name) for one in loads)
        able = [host.name for host in hosts if host and "move" not in host.cannot]
        if len(able) == 1:
            return f"no host but {able[0]} takes jobs from others"
        return "no host holds a converged job next to a progressing one"

    def _is_fresh(self, name: str) -> bool:
        host = self.cluster.hosts.get(name)
        earliest = self.cluster.now - self.parameters.stale * MICRO
        return host is not None and (host.sampled_at is None or host.sampled_at >= earliest)

    def _candidates(self, *, is_target_idle: bool) -> list[Job]:
        source = self.cluster.host
        jobs = [
            job
            for job in source.jobs
            if lasting_name(job) not in self.moved and job.membership.job is None and _can_move(job)
        ]
        classes = {job.id: self._of(job).job_class for job in source.jobs}
        converged = [job for job in jobs if classes[job.id] == CONVERGED]
        if is_target_idle and len(source.jobs) > 1:
            return converged or jobs
        return converged if PROGRESSING in classes.values() else []

    def _weighed(self, job: Job, here: HostLoad, there: HostLoad) -> Choice:
        load, pause_s = self.parameters.load, self.parameters.pause
        if max(here.with_jobs(-1, load), there.with_jobs(+1, load)) >= here[:2]:
            why = f"{job.name} on {there.name} would not lower the heaviest load"
            return Choice(f"no migration: {why}")
        saves = saved_seconds(job, self.cluster.host, self.cluster.hosts[there.name], pause_s)
        if saves <= 0:
            costs = f"{format_seconds(abs(saves))} more than it saves"
            return Choice(f"no migration: {job.name} to {there.name} would cost {costs}")
        both = f"it gains {saves + pause_s:.3g} and costs {pause_s:.3g}"
        why = f"{job.name} to {there.name} saves {saves:.3g} job seconds (predicted: {both})"
        return Choice(why, job, there.name, saves)

    def _of(self, job: Job) -> KnownJob:
        return self.own.get(job.run_id, _UNKNOWN)


def saved_seconds(job: Job, source: HostState, target: HostState, pause_s: float) -> float:
    """Return the job seconds that a migration saves, in equal shares on both hosts (ours).

    The job itself pauses, then runs faster or slower. Its neighbours on the source run faster for
    as long as it would have stayed; its neighbours on the target run slower. The effort that the
    job still needs is predicted; if unknown, it is taken to be as much as the job has had.
    """
    refit([job])
    left = remaining(job).seconds
    need = job.use.attained if left is None or math.isinf(left) else left
    n, m = len(source.jobs), len(target.jobs)
    here = need * n / source.cpus
    there = need * (m + 1) / target.cpus
    return (here - there - pause_s) + here * (n - 1) / n - there * m / (m + 1)


_LONGEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class Moved:
    """A migration ordered earlier: its source, its time (microseconds), and the number of orders
    so far."""

    source: str
    at: int
    orders: int = 1


class OrderedMoves:
    """The migrations ordered so far, by job. `staying`: jobs that must not be ordered to move now,
    because they have moved, may still move, or did not follow a recent order."""

    def __init__(self, saved: Any, cluster: Cluster, cooldown_s: float) -> None:
        """Take on what was saved; `cooldown_s` as SpeCon's parameter."""
        self._moves = {name: Moved(**one) for name, one in (saved or {}).items()}
        self._now = cluster.now
        self.staying = {
            name
            for name, move in self._moves.items()
            if not _is_on(cluster.hosts.get(move.source), name)
            or cluster.now - move.at < _wait_s(move, cooldown_s) * MICRO
        }

    def order(self, name: str, source: str) -> None:
        """Record that a job is ordered to leave its source."""
        before = self._moves.get(name)
        orders = before.orders + 1 if before and before.source == source else 1
        self._moves[name] = Moved(source, self._now, orders)
        self.staying.add(name)

    def is_leaving(self, name: str, source: str) -> bool:
        """Tell whether a job is ordered to leave its host."""
        return name in self.staying and self._moves[name].source == source

    def to_json(self) -> dict[str, Any]:
        """Return what the constructor takes."""
        return {name: asdict(move) for name, move in self._moves.items()}


def _is_on(host: HostState | None, name: str) -> bool:
    return host is not None and any(lasting_name(job) == name for job in host.jobs)


def _wait_s(move: Moved, cooldown_s: float) -> float:
    """Return for how long a job is not ordered again after an order that it did not follow (s)."""
    return min(_LONGEST_S, 2.0 * cooldown_s * float(1 << min(move.orders - 1, 20)))
