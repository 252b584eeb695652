"""SpeCon: speculative migration of slow-growing models away from fast-growing ones.

Mao et al.: Speculative Container Scheduling for Deep Learning Applications in a Kubernetes Cluster,
arXiv 2020. That slow models make room, the classes and the interval are the paper's
and the authors' logs'; the ladder and the choice of source, candidate and target are our
reconstruction. A job is slow when its growth efficiency is below alpha times its own best so far:

    slow:      PC progressing -> WC watching -> CC converged
    not slow:  -> PC

A round orders at most one migration: of the converged job that grows least, from the host with the
most load that holds one next to a progressing one, to the host with the least load, if that lowers
the heaviest load and is predicted to save more time than the pause costs. A host that falls idle
takes a job from the busiest. No limits are set; with `within` each host also orders its jobs, which
is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dltools.notation.times import MICRO
from dltools.plan.policy.base import (
    ActionKind,
    Allocation,
    Cluster,
    Decision,
    JobAction,
    JobClass,
    Policy,
    Requirements,
    State,
    Tone,
)
from dltools.plan.policy.container_history import JITTER, by_run_id
from dltools.plan.policy.growth import Growth, growth, signal_of
from dltools.plan.policy.migration import (
    CONVERGED,
    PROGRESSING,
    WATCHING,
    Chooser,
    KnownJob,
    KnownJobs,
)
from dltools.plan.policy.parameters import parameter
from dltools.plan.policy.slaq import SLAQ
from dltools.plan.policy.srtf import SRTF

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
        18.0,
        "seconds that a migration takes a job out of training",
        high=86400.0,
        source="ours",
    )
    within: str = parameter(
        "none",
        "what each host gives its jobs: none, no limits; srtf or slaq, as that policy does",
        choices=("none", "srtf", "slaq"),
        worth_trying=("srtf", "slaq"),
        source="ours",
    )


@dataclass(frozen=True, slots=True)
class _Moved:
    """A migration ordered earlier: from which host, and when (microseconds)."""

    source: str
    at: int

    @classmethod
    def load(cls, saved: Any) -> _Moved:
        """Return what was saved; a state of version 2 has a list."""
        return cls(**saved) if isinstance(saved, Mapping) else cls(*saved)


class Specon:
    """The policy object. It remembers each job's best growth and class, and the moves ordered."""

    name = "specon"
    help = "migrates slow-growing models away from fast-growing ones, in a cluster (SpeCon)"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """Two windows of the interval, all hosts, and learning curves for what a move saves."""
        return Requirements(
            parameters.itval, windows=2, curves=True, cluster=True,
            shares=parameters.within != "none", silent_jobs=parameters.within != "none",
        )  # fmt: skip

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Classify the jobs of the host sampled last, and look for one migration in the cluster."""
        host = cluster.host
        known = _known(state, cluster)
        shares = _within(cluster, parameters)
        allocations = {}
        for job in host.jobs:
            found = growth(job, cluster.now, cluster.interval_s, host.cpus)
            before = known[host.name].get(job.run_id, KnownJob())
            job_class = transition(
                before.job_class, found.efficiency, before.best, parameters.alpha
            )
            best = max(before.best, found.efficiency or 0.0)
            known[host.name][job.run_id] = KnownJob(best, job_class, found.efficiency)
            reason = _reason(job_class, found, best, parameters.alpha)
            own = shares.get(job.id, Allocation(None, "-", ""))
            allocations[job.id] = replace(
                own, job_class=job_class, reason=reason, signal=signal_of(found), prediction=""
            )
        moved = _pending_moves(state, cluster, parameters.cooldown)
        actions: tuple[JobAction, ...] = ()
        gain = "no migration"
        last = state.get("last")
        if last is None or cluster.now - last >= parameters.cooldown * MICRO * (1 - JITTER):
            choice = Chooser(cluster, known, moved, parameters.load, parameters.pause).choose()
            move, gain = choice.migration, choice.why
            # A plan's actions are of the host sampled last: the source's own round orders the move.
            if move is not None and move.source == host.name:
                reason = f"converged, and slows {move.source}: {gain}"
                actions = (JobAction(ActionKind.MIGRATE, move.job.id, reason, move.target),)
                moved[move.job.name] = _Moved(move.source, cluster.now)
                last = cluster.now
        return Decision(allocations, _memory(known, moved, last), actions=actions, gain=gain)


SPECON = Specon()


def _within(cluster: Cluster, parameters: Parameters) -> Mapping[str, Allocation]:
    if parameters.within == "none":
        return {}
    policy: Policy = SRTF if parameters.within == "srtf" else SLAQ
    return policy.decide(cluster, policy.parameters(), {}).allocations


def transition(job_class: str, efficiency: float | None, best: float, alpha: float) -> str:
    """Return a job's next class; an unknown growth efficiency changes nothing."""
    if efficiency is None:
        return job_class
    if efficiency >= alpha * best and efficiency > 0:
        return PROGRESSING
    return {PROGRESSING: WATCHING, WATCHING: CONVERGED, CONVERGED: CONVERGED}[job_class]


def _known(state: State, cluster: Cluster) -> dict[str, dict[str, KnownJob]]:
    """Return what is remembered of the jobs that still run, and {} for the host sampled last."""
    found: dict[str, dict[str, KnownJob]] = {cluster.sampled: {}}
    for host, saved in (state.get("best") or {}).items():
        if host in cluster.hosts:
            jobs = by_run_id(saved, cluster.hosts[host].jobs)
            found[host] = {run_id: KnownJob.load(one) for run_id, one in jobs.items()}
    return found


def _pending_moves(state: State, cluster: Cluster, cooldown_s: float) -> dict[str, _Moved]:
    """Return the moves that were carried out or still may be, by the job's name.

    A job that is on its source long after the order may be moved again.
    """
    kept = {}
    for name, saved in (state.get("moved") or {}).items():
        move = _Moved.load(saved)
        source = cluster.hosts.get(move.source)
        is_there = source is not None and any(job.name == name for job in source.jobs)
        if not is_there or cluster.now - move.at < 2 * cooldown_s * MICRO:
            kept[name] = move
    return kept


def _memory(known: KnownJobs, moved: Mapping[str, _Moved], last: int | None) -> State:
    """Return what is remembered as JSON values."""
    return {
        "best": {host: {run_id: asdict(one) for run_id, one in jobs.items()}
                 for host, jobs in known.items()},
        "moved": {name: asdict(move) for name, move in moved.items()},
        "last": last,
    }  # fmt: skip


def _reason(job_class: str, found: Growth, best: float, alpha: float) -> str:
    word = _WORDS[job_class]
    if found.efficiency is None:
        return f"{word}: growth efficiency unknown ({found.note})"
    if found.efficiency == 0:
        return f"{word}: growth efficiency 0 of {found.metric}"
    relation = "<" if found.efficiency < alpha * best else ">="
    return (f"{word}: growth efficiency {found.efficiency:.3g} of {found.metric} {relation} "
            f"alpha {alpha:g} of its best {best:.3g}")  # fmt: skip
