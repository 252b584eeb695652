"""Shortest predicted remaining time first.

This order gives the least mean completion time if remaining times are known (Schrage 1968). Here
they are predicted: from epochs or steps if a label or the log gives their number, else from the
learning curve and the target. A job of unknown length goes first until it has had `explore` CPU
seconds, so that a prediction becomes possible. After that it is taken to need as much as it has
had. All of this is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dltools.plan.policy.interface import (
    Allocation,
    Cluster,
    Decision,
    JobClass,
    Requirements,
    State,
)
from dltools.plan.policy.parameters import parameter, seconds
from dltools.plan.policy.shares import queue_shares
from dltools.plan.signals.job import Job
from dltools.plan.signals.remaining_effort import Remaining, refit, remaining

NEW, KNOWN, GUESSED, ENDLESS = "new", "known", "guessed", "endless"
CLASSES = (
    JobClass(NEW, NEW, "of unknown length, in its first `explore` CPU seconds: it goes first"),
    JobClass(KNOWN, KNOWN, "its remaining time is predicted"),
    JobClass(GUESSED, GUESSED, "of unknown length: assumed to need as much as it has had"),
    JobClass(ENDLESS, ENDLESS, "no end in sight, or converged: it goes last"),
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Shortest remaining time first's parameters."""

    itval: float = seconds(30.0, "seconds between two rounds")
    explore: float = parameter(
        10.0, "CPU seconds for which a job of unknown length goes first", low=0.0
    )
    hysteresis: float = parameter(
        0.2, "fraction by which a job must be shorter to overtake the first one", high=0.99
    )
    floor: float = parameter(0.02, "least share of a waiting job (of 1/n)", low=0.001, high=1.0)


class Srtf:
    """The policy object; it holds no state of its own."""

    name = "srtf"
    help = "shortest predicted remaining time first: best for the mean completion time"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """A round each interval, and learning curves."""
        return Requirements(parameters.itval, curves=True, targets=True, efforts=True)

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Sort the jobs by what they still need."""
        host = cluster.host
        refit(host.jobs)
        needs = {job.id: remaining(job) for job in host.jobs}
        ranks = {job.id: _rank(job, needs[job.id], parameters) for job in host.jobs}
        leader = _leader(host.previous)
        if leader in ranks and ranks[leader][0] == 1:
            ranks[leader] = (1, ranks[leader][1] * (1 - parameters.hysteresis))
        order = sorted(host.jobs, key=lambda j: (*ranks[j.id], j.arrived, j.name, j.id))
        jobs = [job for job in order if ranks[job.id][0] > 0]
        shares = queue_shares(jobs, host.cpus, parameters.floor / max(1, len(order)))
        places = {job.id: place for place, job in enumerate(jobs)}
        allocations = {}
        for number, job in enumerate(order, 1):
            rank, need = ranks[job.id][0], needs[job.id]
            job_class = GUESSED if rank == 1 and need.seconds is None else _CLASSES[rank]
            had = f"{job.use.effort:.3g} {job.use.effort_unit}"
            reason = f"{number} of {len(order)}: {need.note}"
            if job_class == GUESSED:
                reason += f"; assumed to need another {had}, as much as it has had"
            why = (job_class, reason, f"{had} attained", need.note)
            share, place = shares.get(job.id, 1.0), places.get(job.id, 0)
            allocations[job.id] = Allocation(share, *why, unlimited=rank == 0, rank=place)
        gain = f"{order[0].name} needs the least and goes first" if order else "none: no job"
        return Decision(allocations, state, gain=gain)


SRTF = Srtf()


_CLASSES = (NEW, KNOWN, ENDLESS, ENDLESS)


def _rank(job: Job, need: Remaining, parameters: Parameters) -> tuple[int, float]:
    """Return the key by which jobs are sorted, least first.

    0: jobs of unknown length that have had less than `explore`; 1: jobs by the effort that they
    need; 2: jobs without an end in sight; 3: jobs that have converged and still run. Jobs of 2 and
    3 are sorted by attained service.
    """
    if need.seconds is None:
        return (0 if job.use.effort < parameters.explore else 1), job.use.effort
    if math.isinf(need.seconds):
        return (3 if need.converged else 2), job.use.effort
    return 1, need.seconds


def _leader(previous: Mapping[str, Allocation]) -> str:
    """Return the job with the largest share of the round before, "" where there is none."""
    shares = {key: old.share or 0.0 for key, old in previous.items() if not old.unlimited}
    return max(sorted(shares), key=shares.__getitem__, default="")
