"""SpeCon: speculative migration of slow-growing models away from fast-growing ones.

Mao et al.: Speculative Container Scheduling for Deep Learning Applications in a Kubernetes Cluster,
arXiv 2020. The idea, the classes and the interval are from the paper and the authors' logs. The
transitions, and the choice of source, job and target, are our reconstruction. A job is slow when
its growth efficiency is below alpha times its own best so far:

    slow:      PC progressing -> WC watching -> CC converged
    not slow:  -> PC

A round orders at most one migration. The source is the most loaded host that runs both a converged
and a progressing job; the job is its converged job that grows least; the target is the least loaded
host. The migration must lower the heaviest load, and must be predicted to save more time than its
pause costs. An idle host takes a job from the busiest one. No limits are set, unless each host also
runs its jobs shortest first (`within`; ours): a job that is to leave gets none then, so that it
writes its checkpoint soon.

That a job moves once, and that an order which is not carried out is given again ever later, is ours
too. The load of each host is kept from its last round, so that a round is cheap with many hosts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from dltools.notation.times import MICRO, format_seconds
from dltools.plan.policy.by_resource import decide
from dltools.plan.policy.interface import (
    ActionKind,
    Allocation,
    Cluster,
    Decision,
    HostState,
    JobAction,
    JobClass,
    Requirements,
    State,
)
from dltools.plan.policy.parameters import parameter, seconds
from dltools.plan.policy.srtf import SRTF
from dltools.plan.signals.container_history import JITTER
from dltools.plan.signals.growth import Growth, cpu_use, growth, signal_of
from dltools.plan.signals.job import Job
from dltools.plan.signals.remaining_effort import refit, remaining

PROGRESSING, WATCHING, CONVERGED = "PC", "WC", "CC"
CLASSES = (
    JobClass(PROGRESSING, "progressing", "it grows at alpha times its best rate or more"),
    JobClass(WATCHING, "watching", "slow for one round"),
    JobClass(CONVERGED, "converged", "slow for two rounds or more: it may migrate"),
)
_WORDS = {job_class.name: job_class.word for job_class in CLASSES}


@dataclass(frozen=True, slots=True)
class Parameters:
    """SpeCon's parameters."""

    alpha: float = parameter(
        0.1, "share of its best growth below which a job is slow", high=1.0, source="paper"
    )
    itval: float = seconds(10.0, "seconds between two rounds", source="paper")
    cooldown: float = seconds(
        30.0, "seconds after a migration before the next one", low=0.0, source="paper"
    )
    load: str = parameter(
        "progressing",
        "what counts as load: progressing jobs, jobs, or CPU use",
        choices=("progressing", "jobs", "cpu"),
    )
    pause: float = seconds(18.0, "seconds that a migration takes a job out of training", low=0.0)
    stale: float = seconds(
        60.0, "seconds without a sample after which a host neither gives nor gets a job", low=1.0
    )
    within: str = parameter(
        "none",
        "what each host gives its jobs: no limits (none), or shortest remaining time first (srtf)",
        choices=("none", "srtf"),
    )


class Specon:
    """The policy object. It remembers each job's best growth and class, and the moves ordered."""

    name = "specon"
    help = "migrates slow-growing models away from fast-growing ones, in a cluster (SpeCon)"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """A history of two intervals, all hosts, and learning curves that predict what a move
        saves."""
        orders = parameters.within != "none"
        return Requirements(
            parameters.itval,
            windows=2,
            curves=True,
            cluster=True,
            shares=orders,
            silent_jobs=orders,
        )

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Classify the jobs of the host sampled last, and look for one migration in the cluster."""
        host, best = cluster.host, state.get("best") or {}
        now, interval_s = cluster.now, cluster.interval_s
        growths = {job.id: growth(job, now, interval_s, host.cpus) for job in host.jobs}
        own = _classified(host, growths, best.get(host.name) or {}, parameters.alpha)
        moves = OrderedMoves(state.get("moved"), cluster, parameters.cooldown)
        load = load_of(host, own, moves.staying, cluster, parameters.load)
        loads = {**(state.get("loads") or {}), host.name: load._asdict()}
        last = state.get("last")
        choice = Choice("no migration")
        if last is None or cluster.now - last >= parameters.cooldown * MICRO * (1 - JITTER):
            choice = Chooser(cluster, loads, own, moves.staying, parameters).choose()
        actions: tuple[JobAction, ...] = ()
        if job := choice.job:
            reason = f"{_cause(own[job.run_id], host.name, choice.target)}: {choice.why}"
            actions = (JobAction(ActionKind.MIGRATE, job.id, reason, choice.target),)
            moves.order(lasting_name(job), host.name)
            last = cluster.now
        given = _in_order(cluster, moves) if parameters.within == "srtf" else {}
        allocations = {}
        for job in host.jobs:
            record, rate = own[job.run_id], growths[job.id]
            part = given.get(job.id, Allocation(None, "-", ""))
            why = (record.job_class, _reason(record, rate, parameters.alpha), signal_of(rate))
            rank, is_free = part.rank, part.unlimited
            allocations[job.id] = Allocation(part.share, *why, unlimited=is_free, rank=rank)
        best = {**best, host.name: {run_id: record._asdict() for run_id, record in own.items()}}
        memory = {"best": best, "loads": loads, "moved": moves.to_json(), "last": last}
        return Decision(allocations, memory, actions=actions, gain=choice.why)


SPECON = Specon()


def _cause(record: KnownJob, source: str, target: str) -> str:
    is_converged = record.job_class == CONVERGED
    return f"converged, and slows {source}" if is_converged else f"{target} is idle"


def _in_order(cluster: Cluster, moves: OrderedMoves) -> dict[str, Allocation]:
    """Return what the jobs of the host sampled last get where the shortest goes first. One that is
    to leave gets no limit, and takes none with it."""
    host = cluster.host
    leaving = [job for job in host.jobs if moves.is_leaving(lasting_name(job), host.name)]
    staying = host.part(host.cpus, [job for job in host.jobs if job not in leaving])
    alone = replace(cluster, hosts={host.name: staying})
    decision = decide(SRTF, alone, SRTF.parameters(), {})
    gone = Allocation(1 / max(1, len(host.jobs)), "-", "", unlimited=True)
    return {**decision.allocations, **{job.id: gone for job in leaving}}


def _classified(
    host: HostState, growths: Mapping[str, Growth], saved: Mapping[str, Any], alpha: float
) -> dict[str, KnownJob]:
    """Return each job of a host with its new class, its best and its newest growth. What was
    `saved` of a job counts no more if its growth is now in another unit."""
    records = {}
    for job in host.jobs:
        record, efficiency = KnownJob(**saved.get(job.run_id, {})), growths[job.id].efficiency
        if record.on_gpu != job.use.uses_gpu:
            record = KnownJob()
        job_class = transition(record.job_class, efficiency, record.best, alpha)
        best = max(record.best, efficiency or 0.0)
        records[job.run_id] = KnownJob(best, job_class, efficiency, job.use.uses_gpu)
    return records


def transition(job_class: str, efficiency: float | None, best: float, alpha: float) -> str:
    """Return a job's next class; an unknown growth efficiency changes nothing."""
    if efficiency is None:
        return job_class
    if efficiency >= alpha * best and efficiency > 0:
        return PROGRESSING
    return {PROGRESSING: WATCHING, WATCHING: CONVERGED, CONVERGED: CONVERGED}[job_class]


def _reason(record: KnownJob, rate: Growth, alpha: float) -> str:
    word, best = _WORDS[record.job_class], record.best
    if rate.efficiency is None:
        return f"{word}: growth efficiency unknown ({rate.note})"
    if rate.efficiency == 0:
        note = f" ({rate.note})" if rate.note else ""
        return f"{word}: growth efficiency 0 of {rate.metric}{note}"
    relation = "<" if rate.efficiency < alpha * best else ">="
    return (
        f"{word}: growth efficiency {rate.efficiency:.3g} of {rate.metric}{rate.per} "
        f"{relation} alpha {alpha:g} of its best {best:.3g}"
    )


class KnownJob(NamedTuple):
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
    """The job that is to migrate, None where none is, and why; and the host it goes to."""

    why: str
    job: Job | None = None
    target: str = ""


class HostLoad(NamedTuple):
    """The load of a host at its last round. Tuples compare field by field, so that the first field
    that differs decides which host is loaded more.

    `first`: the load by the parameter `load`; among equals `jobs`, then `cpu` decide (CPU use as a
    share of the host), then the `name`. `converged` and `free`: how many converged jobs, and how
    many jobs in all, may move. `takes_jobs`: whether it can take a job from another host.
    """

    first: float
    jobs: int
    cpu: float
    name: str
    progressing: int
    converged: int
    free: int
    takes_jobs: bool = True

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
    progressing = sum(job_class == PROGRESSING for job_class in classes.values())
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
        takes_jobs="move" not in host.cannot,
    )


_SWARM_ID = re.compile("[a-z0-9]{25}")


def lasting_name(job: Job) -> str:
    """Return the part of its name that stays when a job continues in another container: of Swarm's
    names SERVICE.SLOT.TASK all but the last part."""
    service, _, task = job.name.rpartition(".")
    return service if "." in service and _SWARM_ID.fullmatch(task) else job.name


def _can_move(job: Job) -> bool:
    is_alone = job.membership.job is None
    return is_alone and not job.use.uses_gpu and "move" not in job.in_force.cannot


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

        An idle target may get any job of the busiest host; else see the module. Where another host
        is the source, there is none.
        """
        if len(self.loads) < 2:
            return Choice("no migration: no other host is known")
        loads = sorted(HostLoad(**load) for load in self.loads.values())
        able = [load for load in loads if load.takes_jobs]
        target = next((load for load in able if self._is_fresh(load.name)), None)
        if target is None:
            return Choice("no migration: no host that takes jobs was sampled recently")
        sources = [load for load in loads if load.may_give(target)]
        if not sources:
            why = (
                f"no host but {able[0].name} takes jobs from others"
                if len(able) == 1
                else "no host holds a converged job next to a progressing one"
            )
            return Choice(f"no migration: {why}")
        source = next((load for load in sources if load.name == self.cluster.sampled), None)
        if source is None or any(
            load[:3] > source[:3] and self._is_fresh(load.name) for load in sources
        ):
            return Choice("")  # a round of that host will find it
        candidates = self._candidates(is_target_idle=not target.jobs)
        order = sorted(candidates, key=lambda job: (self._of(job).growth or 0.0, job.name, job.id))
        # Its jobs may have changed since its last round.
        return self._weighed(order[0], source, target) if order else Choice("")

    def _is_fresh(self, name: str) -> bool:
        host = self.cluster.hosts.get(name)
        earliest = self.cluster.now - self.parameters.stale * MICRO
        return host is not None and (host.sampled_at is None or host.sampled_at >= earliest)

    def _candidates(self, *, is_target_idle: bool) -> list[Job]:
        source = self.cluster.host
        jobs = [
            job for job in source.jobs if lasting_name(job) not in self.moved and _can_move(job)
        ]
        classes = {job.id: self._of(job).job_class for job in source.jobs}
        converged = [job for job in jobs if classes[job.id] == CONVERGED]
        if is_target_idle and len(source.jobs) > 1:
            return converged or jobs
        return converged if PROGRESSING in classes.values() else []

    def _weighed(self, job: Job, here: HostLoad, host_load: HostLoad) -> Choice:
        load, pause_s = self.parameters.load, self.parameters.pause
        if max(here.with_jobs(-1, load), host_load.with_jobs(+1, load)) >= here[:2]:
            why = f"{job.name} on {host_load.name} would not lower the heaviest load"
            return Choice(f"no migration: {why}")
        saves = saved_seconds(job, self.cluster.host, self.cluster.hosts[host_load.name], pause_s)
        if saves <= 0:
            costs = f"{format_seconds(abs(saves))} more than it saves"
            return Choice(f"no migration: {job.name} to {host_load.name} would cost {costs}")
        both = f"it gains {saves + pause_s:.3g} and costs {pause_s:.3g}"
        why = f"{job.name} to {host_load.name} saves {saves:.3g} job seconds (predicted: {both})"
        return Choice(why, job, host_load.name)

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
    source_s = need * n / source.cpus
    target_s = need * (m + 1) / target.cpus
    return (source_s - target_s - pause_s) + source_s * (n - 1) / n - target_s * m / (m + 1)


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
        self._moves = {name: Moved(**fields) for name, fields in (saved or {}).items()}
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
