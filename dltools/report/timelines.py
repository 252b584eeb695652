"""What a job was allowed and used, and what it reported, over a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from dltools.notation.cpu_lists import parse_cpus
from dltools.observations.containers import ContainerRecord, ContainerSample, SeriesPoint
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.realisation.settings import Settings
from dltools.report.jobs import ObservedJob
from dltools.report.run import Timeline

Weights = Mapping[tuple[float, str], float]
"""The sum of the weights of a host's containers that are not paused, by time and host."""

_LITTLE = 0.05
"""Cores of which a job that is allowed, and uses, less is held back by its limits."""


def weight_sums(containers: Iterable[ContainerRecord]) -> Weights:
    """Return the sum of weights at each sample of each host."""
    sums: dict[tuple[float, str], float] = {}
    for one in containers:
        for sample in one.samples:
            weight = 0.0 if sample.allowed_cores() == 0 else sample.cpu_weight
            sums[sample.time, one.host] = sums.get((sample.time, one.host), 0.0) + weight
    return sums


def timeline(job: ObservedJob, weights: Weights, begun: float, last_sampled: float) -> Timeline:
    """Return a job's timeline in seconds since `begun`. A job that is still there at the last
    sample of all, and has not exited, has not ended."""
    found = Timeline(metric=job.metric)
    for container in job.containers:
        if found.limit:
            _migrate(found, container.first_seen - begun)
        _add_cpu(found, container, weights, begun)
    if job.last.samples:
        found.settings = settings(job.last.samples[-1])
    reported = job.series.get(job.metric, [])
    found.progress = [
        SeriesPoint(time - begun, value) for time, value in reported if math.isfinite(value)
    ]
    found.has_diverged = bool(reported) and not math.isfinite(reported[-1].value)
    ended = _ended(job.last, last_sampled)
    found.ended = None if ended is None else ended - begun
    return found


def _ended(last: ContainerRecord, last_sampled: float) -> float | None:
    """Return when a job's last container exited, or else was last seen; None while it is there."""
    if not last.is_sampled:
        return None
    if not math.isnan(last.exited):
        return max(last.exited, last.last_seen)
    return last.last_seen if last.last_seen < last_sampled else None


def settings(sample: ContainerSample) -> Settings:
    """Return the settings in force at a sample, defaults left out."""
    listed = len(parse_cpus(sample.cpuset))
    found = {
        "cpus": sample.cpu_limit < sample.host_cpus and sample.cpu_limit,
        "cpu_weight": sample.cpu_weight != DEFAULT_CPU_WEIGHT and sample.cpu_weight,
        "cpuset": listed < sample.host_cpus and sample.cpuset,
        "state": sample.is_paused and sample.state,
        "turn_s": not math.isnan(sample.turn_s) and sample.turn_s,
        "queue": sample.turn_queue,
    }
    return {name: value for name, value in found.items() if value}


def _migrate(found: Timeline, time: float) -> None:
    """Note that a job starts on another host. It had no CPU on the way."""
    found.migrated.append(time)
    found.limit.append(SeriesPoint(found.limit[-1].time, 0.0))
    found.use.append(SeriesPoint(time, 0.0))


def _add_cpu(found: Timeline, container: ContainerRecord, weights: Weights, begun: float) -> None:
    for sample in container.samples:
        cores = _allowed(sample, weights[sample.time, container.host])
        if not math.isnan(cores):
            found.limit.append(SeriesPoint(sample.time - begun, cores))
    for use in container.cpu_uses():
        if use.begin.is_paused:
            found.paused += use.span_s
        elif max(_allowed(use.begin, weights[use.begin.time, container.host]), use.cores) < _LITTLE:
            found.held_back += use.span_s
    found.use += [
        SeriesPoint(use.end.time - begun, use.cores)
        for use in container.cpu_uses()
        if use.span_s > 0
    ]


def _allowed(sample: ContainerSample, weights: float) -> float:
    """Return the cores that a container may use: what its state, quota and CPU list allow; where
    that is the whole host, its share by weight."""
    cpus, allowed = sample.host_cpus, sample.allowed_cores()
    cores = cpus if math.isnan(allowed) else min(allowed, cpus)
    if weights > 0 and abs(cores - cpus) < 1e-9:
        return cpus * sample.cpu_weight / weights
    return cores
