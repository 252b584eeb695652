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
pause costs. An idle host takes a job from the busiest one. No limits are set, unless `within` names
a policy by which each host also shares its CPUs (ours). If that policy and the migration disagree
about a job, the migration wins, and the reason says so.

`specon_migration` chooses the migration. The load of each host is kept from its last round, so that
a round is cheap with many hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dltools.notation.times import MICRO
from dltools.plan.policy.by_resource import decide
from dltools.plan.policy.flowcon import FLOWCON
from dltools.plan.policy.interface import (
    ActionKind,
    Allocation,
    Cluster,
    Decision,
    HostState,
    JobAction,
    JobClass,
    Policy,
    Requirements,
    State,
    Tone,
)
from dltools.plan.policy.parameters import parameter
from dltools.plan.policy.slaq import SLAQ
from dltools.plan.policy.specon_migration import (
    CONVERGED,
    PROGRESSING,
    WATCHING,
    Choice,
    Chooser,
    KnownJob,
    OrderedMoves,
    OwnJobs,
    lasting_name,
    load_of,
)
from dltools.plan.policy.srtf import SRTF
from dltools.plan.signals.container_history import JITTER
from dltools.plan.signals.growth import Growth, growth, signal_of
from dltools.plan.signals.job import Job

CLASSES = (
    JobClass(PROGRESSING, "progressing", "it grows at alpha times its best or more", Tone.GROWING),
    JobClass(WATCHING, "watching", "slow for one round", Tone.WATCHED),
    JobClass(CONVERGED, "converged", "slow for two rounds or more: it may migrate", Tone.DONE),
)
_WORDS = {one.name: one.word for one in CLASSES}


@dataclass(frozen=True, slots=True)
class Parameters:
    """SpeCon's parameters."""

    alpha: float = parameter(
        0.1, "part of its best growth under which a job is slow", high=1.0, source="paper"
    )
    itval: float = parameter(
        10.0, "seconds between two rounds", low=0.1, high=86400.0, source="paper"
    )
    cooldown: float = parameter(
        30.0, "seconds after a migration without another", high=86400.0, source="paper"
    )
    load: str = parameter(
        "progressing",
        "what makes a host loaded: progressing jobs, jobs, or CPU use",
        choices=("progressing", "jobs", "cpu"),
        source="ours",
    )
    pause: float = parameter(
        18.0, "seconds that a migration takes a job out of training", high=86400.0, source="ours"
    )
    stale: float = parameter(
        60.0,
        "seconds without a sample after which a host neither gives nor takes a job",
        low=1.0,
        high=86400.0,
        source="ours",
    )
    within: str = parameter(
        "none",
        "what each host gives its jobs: no limits (none), or shares as another policy does",
        choices=("none", "flowcon", "srtf", "slaq"),
        source="ours",
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
        return Requirements(
            parameters.itval,
            windows=2,
            curves=True,
            cluster=True,
            shares=parameters.within != "none",
            silent_jobs=parameters.within != "none",
        )

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Classify the jobs of the host sampled last, and look for one migration in the cluster."""
        host = cluster.host
        growths = {
            job.id: growth(job, cluster.now, cluster.interval_s, host.cpus) for job in host.jobs
        }
        own = _classified(host, growths, _own_jobs(state.get("best") or {}, host), parameters.alpha)
        moves = OrderedMoves(state.get("moved"), cluster, parameters.cooldown)
        load = load_of(host, own, moves.staying, cluster.now, cluster.interval_s, parameters.load)
        saved = {
            **(state.get("best") or {}),
            host.name: {run_id: one.to_json() for run_id, one in own.items()},
        }
        loads = {**(state.get("loads") or {}), host.name: load._asdict()}
        last = state.get("last")
        choice = Choice(None, "no migration")
        if last is None or cluster.now - last >= parameters.cooldown * MICRO * (1 - JITTER):
            # A plan acts only on the host sampled last: a job moves in a round of its own host.
            choice = Chooser(
                cluster,
                loads,
                {host.name: own},
                moves.staying,
                parameters.load,
                parameters.pause,
                parameters.stale,
            ).choose(only=host.name)
        actions: tuple[JobAction, ...] = ()
        if move := choice.migration:
            actions = (_order(move.job, move.source, move.target, own, choice.why),)
            moves.order(lasting_name(move.job), move.source)
            last = cluster.now
        leaving = frozenset(
            job.id for job in host.jobs if moves.is_leaving(lasting_name(job), host.name)
        )
        shared = share_within(cluster, parameters.within, leaving, state.get("within") or {})
        allocations = {}
        for job in host.jobs:
            known = own[job.run_id]
            reason = _reason(known.job_class, growths[job.id], known.best, parameters.alpha)
            given = shared.allocations.get(job.id, Allocation(None, "-", ""))
            allocations[job.id] = replace(
                given,
                job_class=known.job_class,
                signal=signal_of(growths[job.id]),
                prediction="",
                reason="; ".join(filter(None, (reason, shared.notes.get(job.id)))),
            )
        memory = {
            "best": saved,
            "loads": loads,
            "moved": moves.to_json(),
            "within": shared.memory,
            "last": last,
        }
        return Decision(allocations, memory, actions=actions, gain=choice.why)


SPECON = Specon()


def _order(job: Job, source: str, target: str, own: OwnJobs, why: str) -> JobAction:
    is_converged = own[job.run_id].job_class == CONVERGED
    cause = f"converged, and slows {source}" if is_converged else f"{target} is idle"
    return JobAction(ActionKind.MIGRATE, job.id, f"{cause}: {why}", target)


def _classified(
    host: HostState, growths: Mapping[str, Growth], before: OwnJobs, alpha: float
) -> dict[str, KnownJob]:
    """Return each job of a host with its new class, its best and its newest growth."""
    found = {}
    for job in host.jobs:
        known, efficiency = before.get(job.run_id, KnownJob()), growths[job.id].efficiency
        job_class = transition(known.job_class, efficiency, known.best, alpha)
        best = max(known.best, efficiency or 0.0)
        found[job.run_id] = KnownJob(best, job_class, efficiency, job.use.uses_gpu)
    return found


def transition(job_class: str, efficiency: float | None, best: float, alpha: float) -> str:
    """Return a job's next class; an unknown growth efficiency changes nothing."""
    if efficiency is None:
        return job_class
    if efficiency >= alpha * best and efficiency > 0:
        return PROGRESSING
    return {PROGRESSING: WATCHING, WATCHING: CONVERGED, CONVERGED: CONVERGED}[job_class]


def _own_jobs(saved: Any, host: HostState) -> OwnJobs:
    """Return the saved records of the jobs that still run on a host, without those whose growth
    is now in another unit."""
    runs = saved.get(host.name) or {}
    known = {
        job.run_id: (job, KnownJob(**runs[job.run_id])) for job in host.jobs if job.run_id in runs
    }
    return {run_id: one for run_id, (job, one) in known.items() if one.on_gpu == job.use.uses_gpu}


def _reason(job_class: str, found: Growth, best: float, alpha: float) -> str:
    word = _WORDS[job_class]
    if found.efficiency is None:
        return f"{word}: growth efficiency unknown ({found.note})"
    if found.efficiency == 0:
        note = f" ({found.note})" if found.note else ""
        return f"{word}: growth efficiency 0 of {found.metric}{note}"
    relation = "<" if found.efficiency < alpha * best else ">="
    return (
        f"{word}: growth efficiency {found.efficiency:.3g} of {found.metric}{found.per} "
        f"{relation} alpha {alpha:g} of its best {best:.3g}"
    )


@dataclass(frozen=True, slots=True)
class HostShares:
    """The shares by the policy within a host, by job id: `allocations`, `notes` for the reasons,
    and that policy's state (`memory`)."""

    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    memory: State = field(default_factory=dict)


_POLICIES: Mapping[str, Policy] = {"flowcon": FLOWCON, "srtf": SRTF, "slaq": SLAQ}


def share_within(cluster: Cluster, name: str, leaving: Collection[str], saved: State) -> HostShares:
    """Return what the policy of a name ("none": no policy) gives the jobs of the host sampled last.

    `leaving`: ids of jobs that are to migrate. Such a job gets no limit, so that it writes its
    checkpoint soon and takes no limit with it, and the others share the host without it.
    """
    policy, host = _POLICIES.get(name), cluster.host
    if policy is None:
        return HostShares()
    classes = (saved.get("classes") or {}).get(host.name, {})
    staying = replace(
        host,
        jobs=tuple(job for job in host.jobs if job.id not in leaving),
        previous={
            key: replace(one, job_class=classes[key])
            for key, one in host.previous.items()
            if key in classes
        },
    )
    alone = replace(cluster, hosts={host.name: staying})
    decision = decide(policy, alone, policy.parameters(), saved.get("memory") or {})
    gone = Allocation(1 / max(1, len(host.jobs)), "-", "", unlimited=True)
    notes = {key: f"within: {one.reason}" for key, one in decision.allocations.items()}
    notes |= dict.fromkeys(
        leaving,
        "it is to leave: no limit, so that it writes its checkpoint "
        "soon; the others share the host",
    )
    kept = {key: one.job_class for key, one in decision.allocations.items()}
    return HostShares(
        {**decision.allocations, **dict.fromkeys(leaving, gone)},
        notes,
        {"classes": {**(saved.get("classes") or {}), host.name: kept}, "memory": decision.state},
    )
