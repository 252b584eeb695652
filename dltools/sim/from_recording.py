"""A recording as a workload: each container becomes a job, as it was, to be run again differently.

Its work is what its CPU seconds were worth under the contention of the time (`sim.contention`),
its curve what it reported over that work, its arrival when it was first seen. A container that
serves gets the cost of a request that explains its response times: the time that one took, times
the cores that it had.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from dltools import labels
from dltools.errors import DataError
from dltools.observations import metrics
from dltools.observations.sample_reader import chunks, samples_by_host
from dltools.observations.samples import HostSamples
from dltools.plan.policy.targets import parse
from dltools.sim.contention import speed
from dltools.sim.curve import LearningCurve
from dltools.sim.workload import HostSpec, Job, Workload, checked

if TYPE_CHECKING:
    import pyarrow as pa

_MICRO = 1e6
_MOST_POINTS = 200
_HELD = 0.9  # part of its quota that a job uses whom it holds back


@dataclass(slots=True)
class _Seen:
    """What a recording says of a container: samples (s, CPU seconds), the quota in force at each
    (cores, NaN for unknown), points (s, value)."""

    name: str
    threads: int = 1
    labels: dict[str, str] = field(default_factory=dict)
    samples: list[tuple[float, float]] = field(default_factory=list)
    quotas: list[float] = field(default_factory=list)
    points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


def workload(table: pa.Table, name: str) -> Workload:
    """Return the jobs and machines of a recording. Raises `DataError` where it has no containers
    with CPU counters."""
    cpus: dict[str, float] = {}
    seen: dict[tuple[str, str], _Seen] = {}
    for chunk in chunks(table):
        for host, feed in samples_by_host(chunk).items():
            cpus[host] = max([cpus.get(host, 0.0), *(s for s in feed.sizes if s > 0)])
            _note(host, feed, seen)
    begun = min((s.samples[0][0] for s in seen.values() if s.samples), default=0.0)
    used = _used(seen)
    jobs, taken = [], set()
    for (host, _), one in sorted(seen.items(), key=lambda item: (item[1].name, item[0])):
        job = _job(one, cpus.get(host) or 1.0, begun, used.get(host, {}))
        if job is not None:
            title, number = job.name, 2
            while title in taken:
                title, number = f"{job.name}-{number}", number + 1
            taken.add(title)
            jobs.append(job if title == job.name else replace(job, name=title))
    if not jobs:
        raise DataError(f"{name}: no container with CPU counters: nothing to run again")
    nodes = [HostSpec(host, size or 1.0) for host, size in sorted(cpus.items())]
    return checked(jobs, nodes, name)


def _note(host: str, feed: HostSamples, seen: dict[tuple[str, str], _Seen]) -> None:
    rows = feed.rows
    for tick, time in enumerate(feed.times):
        for at in range(feed.bounds[tick], feed.bounds[tick + 1]):
            key = rows["container_id"][at]
            one = seen.setdefault((host, key), _Seen(rows["container_name"][at] or key[:12]))
            one.threads = max(one.threads, rows["thread_count"][at] or 1)
            if rows["labels"][at] and not one.labels:
                one.labels = labels.read(rows["labels"][at])
            used = rows["cpu_seconds"][at]
            if used == used and (not one.samples or used >= one.samples[-1][1]):
                one.samples.append((time / _MICRO, used))
                one.quotas.append(rows["cpu_limit_cores"][at])
    for key, own in feed.points.items():
        if (host, key) in seen:
            for metric, points in own.items():
                seen[host, key].points.setdefault(metric, []).extend(
                    (t / _MICRO, v) for t, v in zip(points.times, points.values, strict=True)
                    if math.isfinite(v)
                )  # fmt: skip


def _used(seen: dict[tuple[str, str], _Seen]) -> dict[str, dict[float, float]]:
    """Return the cores that all containers of a host used, by the time up to which they did."""
    found: dict[str, dict[float, float]] = {}
    for (host, _), one in seen.items():
        sums = found.setdefault(host, {})
        for (t0, c0), (t1, c1) in pairwise(one.samples):
            if t1 > t0:
                sums[t1] = sums.get(t1, 0.0) + (c1 - c0) / (t1 - t0)
    return found


def _job(one: _Seen, cpus: float, begun: float, used: dict[float, float]) -> Job | None:
    if len(one.samples) < 2:
        return None
    targets = parse(one.labels)
    first, last = one.samples[0], one.samples[-1]
    arrival, span = first[0] - begun, last[0] - first[0]
    latencies = [name for name in one.points if name.startswith("latency")]
    if targets.qoe_s is not None or latencies:
        cores = (last[1] - first[1]) / span if span > 0 else 0.0
        named = "latency_seconds" if "latency_seconds" in one.points else next(iter(latencies), "")
        times = [value for _, value in one.points.get(named, []) if value > 0]
        if not times or cores <= 0:
            return None
        mean = math.fsum(times) / len(times)
        request = mean * min(1.0, cores)
        return Job(one.name, arrival, request=request, duration=span, qoe=targets.qoe_s)
    threads = _threads(one, cpus)
    works = _works(one, threads, cpus, used)
    total = works[-1]
    if total <= 0:
        return None
    metric = targets.metric or min(one.points, key=metrics.rank, default=None)
    points = one.points.get(metric or "", [])
    table = _table(points, one.samples, works)
    curve = LearningCurve(metric or "loss", "points", table=table) if table else LearningCurve()
    return Job(
        one.name, arrival, total, threads,
        epochs=max(1, min(len(points) or 100, _MOST_POINTS)),
        curve=curve, first=targets.first, final=targets.final,
    )  # fmt: skip


def _threads(one: _Seen, cpus: float) -> int:
    """Return how many threads kept busy: those it had, but no more than the CPUs that it ever used,
    rounded up."""
    most = 0.0
    for (t0, c0), (t1, c1) in pairwise(one.samples):
        if t1 > t0:
            most = max(most, (c1 - c0) / (t1 - t0))
    used = max(1, math.ceil(most - 0.1))
    if one.threads > 1 and used == 1:
        used = min(one.threads, max(1, int(cpus)))  # it may have been held below its threads
    return min(one.threads, used)


def _works(one: _Seen, threads: int, cpus: float, used: dict[float, float]) -> list[float]:
    """Return the useful work done by each sample. What a quota held back cost nothing more: there
    the others' use tells how much they were in the way."""
    works = [0.0]
    for ((t0, c0), (t1, c1)), quota in zip(pairwise(one.samples), one.quotas[1:], strict=True):
        span = t1 - t0
        cores = (c1 - c0) / span if span > 0 else 0.0
        held = quota < cpus and cores >= _HELD * quota
        left = cpus - (used.get(t1, cores) - cores) if held else None
        works.append(works[-1] + speed(cores, threads, cpus, beside=left) * span)
    return works


def _table(
    points: Sequence[tuple[float, float]],
    samples: Sequence[tuple[float, float]],
    works: Sequence[float],
) -> tuple[tuple[float, float], ...]:
    """Return (part of the work, value) of up to 200 points, between the samples."""
    step = max(1, math.ceil(len(points) / _MOST_POINTS))
    found, at = [], 0
    for time, value in sorted(points)[::step]:
        while at < len(samples) - 2 and samples[at + 1][0] <= time:
            at += 1
        (t0, _), (t1, _) = samples[at], samples[at + 1]
        part = min(1.0, max(0.0, (time - t0) / (t1 - t0) if t1 > t0 else 0.0))
        found.append(((works[at] + (works[at + 1] - works[at]) * part) / works[-1], value))
    return tuple(found)
