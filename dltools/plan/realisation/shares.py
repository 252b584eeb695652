"""Quotas and weights: each job gets its share all the time."""

from __future__ import annotations

from dataclasses import dataclass

from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.realisation.base import MILD_NOTE, TURN_NOTE, Case, Realisation
from dltools.plan.realisation.mode import is_serving
from dltools.plan.realisation.queue import Bound, Queue
from dltools.plan.realisation.settings import LEAST_WEIGHT, MOST_WEIGHT, Settings

LEAST_CPUS = 0.01
"""Smallest quota in cores: the kernel's least quota of 1 ms in a period of 100 ms."""

MILD_WEIGHTS = (512.0, 2048.0)
"""Bounds where what is set may stay for good (ours)."""


def quotas(case: Case) -> Realisation:
    """Return a hard cap of share * cpus cores for each job, to 0.001; a share of 1 is without one.

    Quotas isolate, and leave CPU idle where a job does not use its share.
    """
    fair = _without_starvation(case)
    settings: dict[str, Settings] = {}
    total = 0.0
    for job in case.jobs:
        share = 1.0 if case.is_unlimited(job) else fair.shares[job.id]
        cores = round(max(LEAST_CPUS, share * case.cpus), 3)
        settings[job.id] = {"cpus": None if cores >= case.cpus else cores}
        total += min(cores, case.most_cpus(job))
    note = f"quotas sum to {total:.3g} of {case.cpus:g} CPUs; what a job leaves of its own is lost"
    return case.realisation(note, settings=settings, notes=fair.notes, queue=fair.queue)


def weights(case: Case) -> Realisation:
    """Return weights in proportion to the shares, 1024 for an average share and for a share of 1.

    Weights are work-conserving: what one job leaves the others take. Where the choice is even, each
    job has 1024.
    """
    if case.choice.is_even:
        even: dict[str, Settings] = {
            job.id: {"cpu_weight": DEFAULT_CPU_WEIGHT} for job in case.jobs
        }
        return case.realisation("no job is held back", settings=even)
    fair = _without_starvation(case)
    settings: dict[str, Settings] = {}
    is_mild = case.choice.is_mild
    least, most = MILD_WEIGHTS if is_mild else (LEAST_WEIGHT, MOST_WEIGHT)
    for job in case.jobs:
        share = fair.shares[job.id]
        is_default = case.is_unlimited(job) or share >= 1
        part = share * len(case.jobs) / max(1, len(job.members))
        weight = DEFAULT_CPU_WEIGHT * (1.0 if is_default else part)
        bounded = min(most, max(least, weight))
        settings[job.id] = {"cpu_weight": float(round(bounded))}
    note = "work-conserving: what a job leaves the others take"
    note += f"; {MILD_NOTE}" if is_mild else ""
    return case.realisation(note, settings=settings, notes=fair.notes, queue=fair.queue)


@dataclass(frozen=True, slots=True)
class _Fair:
    """Shares under which no job starves, what there is to say of them, and the queue after."""

    shares: dict[str, float]
    notes: dict[str, str]
    queue: Queue


def _without_starvation(case: Case) -> _Fair:
    """Give a job that had less than half an equal share for too long as much as the largest."""
    jobs = [job for job in case.jobs if not is_serving(job)]
    shares = {job.id: case.share(job) for job in case.jobs}
    low = [job for job in jobs if shares[job.id] < 1 / (2 * len(case.jobs)) - 1e-12]
    bound = Bound(len(low) + (len(low) < len(jobs)), case.choice.queue.max_slowdown)
    urgent = set(case.queue.urgent((job.run_id for job in low), bound, case.now))
    notes = {job.id: TURN_NOTE for job in low if job.run_id in urgent}
    shares |= {key: max(shares.values()) for key in notes}
    waiting = [job.run_id for job in low if job.run_id not in urgent]
    first = [job.run_id for job in jobs if job.run_id not in waiting]
    queue = case.queue.moved(first, waiting, urgent, (), bound, case.now)
    return _Fair(shares, notes, queue)
