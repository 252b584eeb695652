"""Lower bounds: times that no policy can beat, even if it knows all works and arrivals.

All hosts are replaced by one host that runs one job at a time on all their CPUs, without
contention. It can do whatever they can. Shortest remaining time first gives it the least mean
completion time (Schrage 1968). Also, no job ends before its arrival plus its work at full speed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from dltools.sim.workload import Job, Workload


def mean_completion(workload: Workload, works: Sequence[float] | None = None) -> float:
    """Return the least mean completion time (s) of a workload's trainings. `works` replaces their
    own works, for example by the works to a target."""
    jobs = [job for job in workload.jobs if not job.serves]
    if not jobs:
        return math.nan
    asked = [job.work for job in jobs] if works is None else works
    pairs = list(zip(jobs, asked, strict=True))
    speed = math.fsum(host.cpus for host in workload.hosts)
    pooled = _srpt([(job.arrival, work) for job, work in pairs], speed)
    alone = [_full_speed_seconds(job, workload, work) for job, work in pairs]
    return max(pooled, math.fsum(alone) / len(jobs))


def seconds_alone(job: Job, workload: Workload) -> float:
    """Return the seconds that a training takes alone on the largest host."""
    return job.startup + _full_speed_seconds(job, workload, job.work)


def makespan(workload: Workload) -> float:
    """Return the least time (s) from the first arrival to the last end."""
    trainings = [job for job in workload.jobs if not job.serves]
    if not trainings:
        return math.nan
    speed = math.fsum(host.cpus for host in workload.hosts)
    end, clock = 0.0, 0.0
    for job in trainings:
        clock = max(clock, job.arrival) + job.work / speed
        end = max(end, clock, job.arrival + seconds_alone(job, workload))
    return end - trainings[0].arrival


def _full_speed_seconds(job: Job, workload: Workload, work: float) -> float:
    return work / min(float(job.threads), max(host.cpus for host in workload.hosts))


def _srpt(jobs: Sequence[tuple[float, float]], speed: float) -> float:
    """Return the mean completion time (s) of shortest remaining time first on one server of this
    speed; `jobs` are (arrival, work)."""
    coming = sorted(jobs)
    left: list[tuple[float, float]] = []  # remaining work, arrival
    now, total, at = 0.0, 0.0, 0
    while at < len(coming) or left:
        if not left:
            now = max(now, coming[at][0])
        while at < len(coming) and coming[at][0] <= now:
            heapq.heappush(left, (coming[at][1], coming[at][0]))
            at += 1
        work, arrival = heapq.heappop(left)
        until = coming[at][0] if at < len(coming) else math.inf
        if now + work / speed <= until:
            now += work / speed
            total += now - arrival
        else:
            heapq.heappush(left, (work - (until - now) * speed, arrival))
            now = until
    return total / len(coming)
