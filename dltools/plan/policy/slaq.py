"""Greatest predicted quality gain per CPU second first.

Zhang, Stafman, Or, Freedman: SLAQ: Quality-Driven Scheduling for Distributed Machine Learning,
SoCC 2017. The host is cut into small parts. Each part goes to the job whose loss it would lower
most in the next interval; losses are normalised by the largest change that each has shown. The
curves are ours (dltools.plan.signals.curves). Also ours: a job whose curve is unknown has an equal
share set aside and no limit; jobs that gain nothing any more share equally what the others leave.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dltools.plan.policy.interface import Allocation, Cluster, Decision, Requirements, State
from dltools.plan.policy.parameters import parameter, seconds
from dltools.plan.policy.shares import cap, with_leftover
from dltools.plan.signals.evaluation_metric import metric_of, why_flat
from dltools.plan.signals.job import Job
from dltools.plan.signals.remaining_effort import Evidence, evidence, refit


@dataclass(frozen=True, slots=True)
class Parameters:
    """SLAQ's parameters."""

    itval: float = seconds(30.0, "seconds between two rounds, and how far to predict")
    floor: float = parameter(0.1, "least share of a job (of 1/n)", low=0.001, high=1.0)


class Slaq:
    """The policy object; it holds no state of its own."""

    name = "slaq"
    help = "greatest predicted quality gain per CPU second first (like SLAQ, SoCC 2017)"
    parameters = Parameters

    def requirements(self, parameters: Parameters) -> Requirements:
        """A round each interval, and learning curves."""
        return Requirements(parameters.itval, curves=True, efforts=True)

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Give the host part by part to the job that gains most by it."""
        host = cluster.host
        refit(host.jobs)
        n = max(1, len(host.jobs))
        budget = host.cpus * cluster.interval_s
        shown = {job.id: evidence(job, metric_of(job)) for job in host.jobs}
        by_job = {job.id: _quality(job, shown[job.id], budget) for job in host.jobs}
        quality = {key: ahead for key, ahead in by_job.items() if ahead is not None}
        shares = {job.id: 1 / n for job in host.jobs}
        if quality:
            jobs = [job for job in host.jobs if job.id in quality]
            total = sum(shares[job.id] for job in jobs)
            shares |= _greedy(jobs, quality, total, host.cpus, parameters.floor)
        allocations = {}
        for job in host.jobs:
            share, ahead, seen = shares[job.id], quality.get(job.id), shown[job.id]
            if ahead is None:
                why = seen.note or why_flat(seen.metric)
                allocations[job.id] = Allocation(share, "-", why, unlimited=True)
                continue
            gain = ahead(share)
            effort = f"{share * budget:.3g} {job.use.effort_unit}"
            note = f"{seen.metric} improves by {gain:.2%} of its change so far in {effort}"
            note = seen.note if seen.has_diverged else note
            attained = f"{job.use.effort:.3g} {job.use.effort_unit} attained"
            rank = int(ahead(1.0) < _NO_GAIN)
            allocations[job.id] = Allocation(share, "-", note, attained, note, rank=rank)
        return Decision(allocations, state, gain=_gain(len(quality), n))


SLAQ = Slaq()

_PARTS = 4
"""Parts per job that the host is cut into (ours)."""

_NO_GAIN = 1e-3
"""A job counts as converged if its metric would gain less than this fraction of its change
so far with the whole host for an interval (ours)."""

Quality = Callable[[float], float]
"""Maps a share of the host to the gain of a job's metric until the next round, as a fraction of its
change so far."""


def _quality(job: Job, shown: Evidence, budget: float) -> Quality | None:
    """Return what a job gains by a share, None where the curve is unknown. `budget` is the effort
    that the whole host gives until the next round."""
    curve = shown.curve
    if shown.has_diverged:
        return lambda _: 0.0
    if curve is None:
        return None
    begin, now = curve.soon(curve.first), curve.soon(job.use.effort)
    way, sign = abs(now - begin), 1 if now > begin else -1

    def gained(share: float) -> float:
        then = curve.soon(job.use.effort + share * budget)
        return max(0.0, sign * (then - now) / way) if way else 0.0

    return None if shown.fluctuates and gained(1.0) < _NO_GAIN else gained


def _greedy(
    jobs: Sequence[Job], quality: Mapping[str, Quality], total: float, cpus: float, floor: float
) -> dict[str, float]:
    """Return the shares of jobs of known curve, which part by part get what the others leave them,
    the `total`, beyond their floor."""
    least = floor * total / len(jobs)
    part = (total - least * len(jobs)) / (_PARTS * len(jobs))
    shares = {job.id: least for job in jobs}
    flat = [job.id for job in jobs if quality[job.id](1.0) < _NO_GAIN]
    most = {job.id: cap(job, cpus) + 1e-9 for job in jobs}
    heap: list[tuple[float, int, str, str, Job]] = []

    def offer(job: Job) -> None:
        share = shares[job.id] + part
        if share <= most[job.id]:
            more = quality[job.id](share) - quality[job.id](shares[job.id])
            heapq.heappush(heap, (-more, job.arrived, job.name, job.id, job))

    for job in jobs:
        if job.id not in flat:
            offer(job)
    for _ in range(_PARTS * len(jobs)):
        if heap:
            job = heapq.heappop(heap)[-1]
            shares[job.id] += part
            offer(job)
    left = total - sum(shares.values())
    if not flat or left <= 1e-9:
        return with_leftover(shares, left)
    return shares | {key: shares[key] + left / len(flat) for key in flat}


def _gain(gains: int, jobs: int) -> str:
    if not gains:
        return "none predicted yet: too few points"
    return f"the gain of {gains} of {jobs} jobs is predicted; the one that gains most goes first"
