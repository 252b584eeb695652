"""Turns a recording into a run: when each job started and ended, its CPU use, and its reports.

`observed_run` is what dl-report calls for a recording. Containers become jobs. Each job gets a
timeline and a result; a server also the time for which it met its response-time target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from dltools.actions.settings import Settings, as_found
from dltools.errors import DataError
from dltools.labels import METRIC
from dltools.notation.limits import DEFAULT_WEIGHT, weight_of
from dltools.notation.resources import count_cpus
from dltools.observations import judging_metric
from dltools.observations.container_records import (
    ContainerRecord,
    ContainerSample,
    Series,
    SeriesPoint,
    main_metric,
    read_containers,
)
from dltools.observations.outcomes import JobResult, satisfies
from dltools.observations.targets import Targets, parse
from dltools.report.timelines import Run, Timeline

if TYPE_CHECKING:
    import pyarrow as pa

_STOPPED = (130, 137, 143)
"""Exit codes of containers that a signal ended on request."""


def observed_run(tables: Iterable[pa.Table], label: str, name: str) -> Run:
    """Return the run that a recording shows.

    The recording of a saved log has no containers. Its jobs have only progress, without CPU use and
    without an end. Raises `DataError` if there is neither a container nor progress.
    """
    records = read_containers(tables)
    if not records.containers:
        raise DataError(f"{name}: no container and no progress was observed: nothing to report")
    begun = min(container.first_seen for container in records.containers)
    is_sampled = any(container.is_sampled for container in records.containers)
    run = Run(label, begun=begun, is_sampled=is_sampled)
    jobs = observed_jobs(records.containers)
    weights = weight_sums(records.containers)
    for job in jobs:
        run.timelines[job.name] = timeline(job, weights, begun, records.last_sampled)
    results = [_result(job, run.timelines[job.name], begun) for job in jobs]
    run.repeats = [sorted(results, key=lambda result: (result.arrival, result.name))]
    run.idle_joules = math.fsum(host.idle_joules for host in records.hosts)
    return run


def _result(job: ObservedJob, timeline: Timeline, begun: float) -> JobResult:
    started = job.containers[0].started
    start = 0.0 if math.isnan(started) else max(0.0, started - begun)
    served, satisfied = time_served(job)
    exit_code = job.last.exit_code
    was_stopped = served > 0 and exit_code in _STOPPED
    has_failed = timeline.ended is not None and bool(exit_code) and not was_stopped
    return JobResult(
        job.name,
        job.last.host,
        arrival=start,
        start=start,
        finish=None if has_failed else timeline.ended,
        first=_time_of_meeting(job, job.targets.first, begun),
        final=_time_of_meeting(job, job.targets.final, begun),
        served=served,
        satisfied=satisfied,
        cpu=math.fsum(part.cpu_seconds_since(begun) for part in job.containers),
        migrations=len(timeline.migrated),
        exit_code=exit_code if has_failed else None,
        gpu=math.fsum(part.gpu_seconds for part in job.containers),
        waited=timeline.paused + timeline.held_back if job.last.is_sampled else None,
        user=job.last.user,
        joules=math.fsum(part.gpu_joules for part in job.containers),
        job=job.last.job,
    )


def _time_of_meeting(job: ObservedJob, target: float | None, begun: float) -> float | None:
    if target is None:
        return None
    points = job.series.get(job.targets.metric or "", [])
    met = (time - begun for time, value in points if job.targets.meets(value, target))
    return next(met, None)


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """One job: its containers in order of time, of which there are several if it has migrated; its
    targets; its progress points by metric."""

    name: str
    containers: tuple[ContainerRecord, ...]
    targets: Targets
    series: dict[str, Series]

    @property
    def last(self) -> ContainerRecord:
        """Its last container."""
        return self.containers[-1]

    @property
    def metric(self) -> str:
        """The metric to judge it by, "" if it reported none."""
        label = self.containers[0].labels.get(METRIC)
        return self.targets.metric or main_metric(self.series, label)

    @property
    def latencies(self) -> Series:
        """Its response times (s), [] if it reported none."""
        names = judging_metric.latencies(self.series)
        return self.series[names[0]] if names else []


def observed_jobs(containers: Iterable[ContainerRecord]) -> list[ObservedJob]:
    """Return the jobs in order of their first appearance.

    Containers of one name that ran one after the other on different hosts are one job. Other
    containers of the same name get a number.
    """
    parts: dict[str, list[ContainerRecord]] = {}
    for container in sorted(containers, key=attrgetter("first_seen", "host", "id")):
        title, number = container.name, 2
        while title in parts and not _is_migration(parts[title][-1], container):
            title, number = f"{container.name} ({number})", number + 1
        parts.setdefault(title, []).append(container)
    return [_job(title, own) for title, own in parts.items()]


def _is_migration(before: ContainerRecord, after: ContainerRecord) -> bool:
    """Tell whether the second container may be the job of the first one on a new host."""
    return before.host != after.host and before.last_seen <= after.first_seen


def _job(name: str, parts: list[ContainerRecord]) -> ObservedJob:
    series: dict[str, Series] = {}
    for part in parts:
        for metric, points in part.series.items():
            series.setdefault(metric, []).extend(points)
    for points in series.values():
        points.sort(key=lambda point: point.time)
    return ObservedJob(name, tuple(parts), parse(parts[0].labels), series)


Weights = Mapping[tuple[float, str], float]
"""The sum of the weights of a host's containers that are not paused, by time and host."""

_MOST_OF_A_HOST = 0.95
"""A job that may use this part of the host's CPUs or more has no limit."""

_LITTLE = 0.05
"""A job that may use, and does use, fewer cores than this is held back by its limits."""


def weight_sums(containers: Iterable[ContainerRecord]) -> Weights:
    """Return the sum of weights at each sample of each host, without paused containers."""
    sums: dict[tuple[float, str], float] = {}
    for container in containers:
        for sample in container.samples:
            weight = 0.0 if sample.allowed_cores() == 0 else weight_of(sample.limits)
            key = sample.time, container.host
            sums[key] = sums.get(key, 0.0) + weight
    return sums


def timeline(job: ObservedJob, weights: Weights, begun: float, last_sampled: float) -> Timeline:
    """Return a job's timeline in seconds since `begun`. A job that is in the last sample of all and
    has not exited has no end."""
    line = Timeline(metric=job.metric)
    for container in job.containers:
        if line.limit:
            _migrate(line, container.first_seen - begun)
        _add_cpu(line, container, weights, begun)
    if job.last.samples:
        line.settings = settings(job.last.samples[-1])
    reported = job.series.get(job.metric, [])
    line.progress = [
        SeriesPoint(time - begun, value) for time, value in reported if math.isfinite(value)
    ]
    line.has_diverged = bool(reported) and not math.isfinite(reported[-1].value)
    ended = _ended(job.last, last_sampled)
    line.ended = None if ended is None else ended - begun
    return line


def _ended(last: ContainerRecord, last_sampled: float) -> float | None:
    """Return when a job's last container exited, or else was last seen; None if it is still
    there."""
    if not last.is_sampled:
        return None
    if not math.isnan(last.exited):
        return max(last.exited, last.last_seen)
    return last.last_seen if last.last_seen < last_sampled else None


def settings(sample: ContainerSample) -> Settings:
    """Return the settings in force at a sample, without those at their defaults."""
    cpuset, weight = sample.limits.get("cpuset") or "", weight_of(sample.limits)
    values = {
        "cpus": sample.quota < sample.host_cpus and sample.quota,
        "weight": weight != DEFAULT_WEIGHT and weight,
        "cpuset": count_cpus(cpuset) < sample.host_cpus and cpuset,
        "state": sample.is_paused and sample.state,
        "turn_s": not math.isnan(sample.turn_s) and sample.turn_s,
        "queue": sample.turn_queue,
    }
    return as_found({name: value for name, value in values.items() if value})


def _migrate(line: Timeline, time: float) -> None:
    """Add the start of a job on another host. It used no CPU in between."""
    line.migrated.append(time)
    line.limit.append(SeriesPoint(line.limit[-1].time, 0.0))
    line.bound.append(SeriesPoint(line.limit[-1].time, math.nan))
    line.use.append(SeriesPoint(time, 0.0))


def _add_cpu(line: Timeline, container: ContainerRecord, weights: Weights, begun: float) -> None:
    for sample in container.samples:
        cores = _allowed(sample, weights[sample.time, container.host])
        if not math.isnan(cores):
            line.limit.append(SeriesPoint(sample.time - begun, cores))
            is_bound = cores < _MOST_OF_A_HOST * sample.host_cpus and bool(settings(sample))
            bound = cores if is_bound else math.nan
            line.bound.append(SeriesPoint(sample.time - begun, bound))
    for use in container.cpu_uses():
        if use.begin.is_paused:
            line.paused += use.span_s
        elif max(_allowed(use.begin, weights[use.begin.time, container.host]), use.cores) < _LITTLE:
            line.held_back += use.span_s
        if use.span_s > 0:
            line.use.append(SeriesPoint(use.end.time - begun, use.cores))


def _allowed(sample: ContainerSample, weights: float) -> float:
    """Return the cores that a container may use, by its state, quota and CPU list; if these allow
    the whole host, its share by weight."""
    cpus, allowed = sample.host_cpus, sample.allowed_cores()
    cores = cpus if math.isnan(allowed) else min(allowed, cpus)
    if weights > 0 and abs(cores - cpus) < 1e-9:
        return cpus * weight_of(sample.limits) / weights
    return cores


def time_served(job: ObservedJob) -> tuple[float, float]:
    """Return how long a job served, and for how long of that it met its target (s). A response
    time holds until the next."""
    served = satisfied = 0.0
    for begin, end in pairwise(job.latencies):
        served += end.time - begin.time
        if satisfies(begin.value, job.targets.qoe_s):
            satisfied += end.time - begin.time
    return served, satisfied
