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

`specon_migration` chooses the migration. The load of each host is kept from its last round, so that
a round is cheap with many hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from dltools.notation.times import MICRO
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
from dltools.plan.policy.specon_migration import (
    CONVERGED,
    PROGRESSING,
    WATCHING,
    Choice,
    Chooser,
    KnownJob,
    OrderedMoves,
    Parameters,
    lasting_name,
    load_of,
)
from dltools.plan.policy.srtf import SRTF
from dltools.plan.signals.container_history import JITTER
from dltools.plan.signals.growth import Growth, growth, signal_of

CLASSES = (
    JobClass(PROGRESSING, "progressing", "it grows at alpha times its best or more"),
    JobClass(WATCHING, "watching", "slow for one round"),
    JobClass(CONVERGED, "converged", "slow for two rounds or more: it may migrate"),
)
_WORDS = {one.name: one.word for one in CLASSES}


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
        growths = {
            job.id: growth(job, cluster.now, cluster.interval_s, host.cpus) for job in host.jobs
        }
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
            is_converged = own[job.run_id].job_class == CONVERGED
            cause = (
                f"converged, and slows {host.name}" if is_converged else f"{choice.target} is idle"
            )
            reason = f"{cause}: {choice.why}"
            actions = (JobAction(ActionKind.MIGRATE, job.id, reason, choice.target),)
            moves.order(lasting_name(job), host.name)
            last = cluster.now
        given = _in_order(cluster, moves) if parameters.within == "srtf" else {}
        allocations = {}
        for job in host.jobs:
            known, found = own[job.run_id], growths[job.id]
            allocations[job.id] = replace(
                given.get(job.id, Allocation(None, "-", "")),
                job_class=known.job_class,
                reason=_reason(known, found, parameters.alpha),
                signal=signal_of(found),
                prediction="",
            )
        best = {**best, host.name: {run_id: asdict(one) for run_id, one in own.items()}}
        memory = {"best": best, "loads": loads, "moved": moves.to_json(), "last": last}
        return Decision(allocations, memory, actions=actions, gain=choice.why)


SPECON = Specon()


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
    found = {}
    for job in host.jobs:
        known, efficiency = KnownJob(**saved.get(job.run_id, {})), growths[job.id].efficiency
        if known.on_gpu != job.use.uses_gpu:
            known = KnownJob()
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


def _reason(known: KnownJob, found: Growth, alpha: float) -> str:
    word, best = _WORDS[known.job_class], known.best
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
