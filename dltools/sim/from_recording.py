"""A recording as a workload: each container becomes a job that another policy can run again.

A training's work is what its CPU seconds were worth under the contention of the time (see
`dltools.sim.contention`), its curve what it reported over that work. The cost of a request is its
response time, times the cores that the container used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dltools.errors import DataError
from dltools.observations import metric_names
from dltools.observations.container_reader import read_containers
from dltools.observations.containers import ContainerRecord, CpuUse, SeriesPoint
from dltools.plan.policy.targets import parse
from dltools.sim.contention import speed
from dltools.sim.curve import LearningCurve
from dltools.sim.workload import HostSpec, Job, Workload, workload_of

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_POINTS = 200
_HELD = 0.9
"""Share of its quota from which a container's quota holds it back."""

_UseByTime = Mapping[float, float]
"""Cores that all containers of a host used, by the time of the sample up to which they did."""


def recorded_workload(table: pa.Table, name: str) -> Workload:
    """Return the jobs and hosts of a recording. Raises `DataError` where no container has a CPU
    counter."""
    records = read_containers(table)
    cpus = {host.name: host.cpus or 1.0 for host in records.hosts}
    counted = [one.counted_samples() for one in records.containers]
    begun = min((samples[0].time for samples in counted if samples), default=0.0)
    recorded = [_Recorded(one, tuple(one.cpu_uses()), cpus.get(one.host, 1.0), begun)
              for one in records.containers]  # fmt: skip
    used = _use_by_host(recorded)
    ordered = sorted(recorded, key=lambda one: (one.record.name, one.record.host,
                                                one.record.id))  # fmt: skip
    jobs = [job for one in ordered if (job := one.job(used[one.record.host])) is not None]
    if not jobs:
        raise DataError(f"{name}: no container has CPU counters, so no job can be run again")
    hosts = [HostSpec(host, count) for host, count in sorted(cpus.items())]
    return workload_of(_with_unique_names(jobs), hosts, name)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a container used, on a host of so many CPUs, in a recording that began at `begun`."""

    record: ContainerRecord
    uses: tuple[CpuUse, ...]
    host_cpus: float
    begun: float

    @property
    def arrival(self) -> float:
        """Seconds from the begin of the recording to the first sample."""
        return self.uses[0].begin.time - self.begun

    def job(self, used: _UseByTime) -> Job | None:
        """Return the job, None where it used nothing that could be run again."""
        if not self.uses:
            return None
        qoe = parse(self.record.labels).qoe_s
        latencies = metric_names.latencies(self.record.series)
        if qoe is not None or latencies:
            return self._serving(qoe, self._finite(latencies[0]) if latencies else [])
        return self._training(used)

    def _serving(self, qoe: float | None, latencies: Sequence[SeriesPoint]) -> Job | None:
        span = self.uses[-1].end.time - self.uses[0].begin.time
        cores = math.fsum(use.seconds for use in self.uses) / span if span > 0 else 0.0
        times = [value for _, value in latencies if value > 0]
        if not times or cores <= 0:
            return None
        request = math.fsum(times) / len(times) * min(1.0, cores)
        return Job(self.record.name, self.arrival, request=request, duration=span, qoe=qoe)

    def _training(self, used: _UseByTime) -> Job | None:
        works = self._works(used)
        if works[-1] <= 0:
            return None
        targets = parse(self.record.labels)
        metric = targets.metric or min(
            self.record.series, key=metric_names.evaluation_rank, default="loss"
        )
        points = self._finite(metric)
        table = _curve_table(points, self.uses, works)
        return Job(
            self.record.name, self.arrival, works[-1], self._threads(),
            epochs=max(1, min(len(points) or 100, _MOST_POINTS)),
            curve=LearningCurve(metric, "points", table=table) if table else LearningCurve(),
            first=targets.first, final=targets.final,
        )  # fmt: skip

    def _finite(self, metric: str) -> list[SeriesPoint]:
        points = self.record.series.get(metric, [])
        return [point for point in points if math.isfinite(point.value)]

    def _threads(self) -> int:
        """Return how many threads were busy: those alive, but no more than the most cores that it
        ever used, rounded up."""
        alive = self.record.threads
        most = max(use.cores for use in self.uses)
        used = max(1, math.ceil(most - 0.1))
        if alive > 1 and used == 1:
            used = max(1, int(self.host_cpus))  # a limit may have held back the others
        return min(alive, used)

    def _works(self, used: _UseByTime) -> list[float]:
        """Return the useful work done by each sample.

        A quota costs no more than what it holds back: then the use of the others tells how much
        they were in the way.
        """
        threads, cpus = self._threads(), self.host_cpus
        works = [0.0]
        for use in self.uses:
            held = use.end.cpu_limit < cpus and use.cores >= _HELD * use.end.cpu_limit
            others = used.get(use.end.time, use.cores) - use.cores
            rate = speed(use.cores, threads, cpus, without_quota=cpus - others if held else None)
            works.append(works[-1] + rate * use.span_s)
        return works


def _use_by_host(recorded: Sequence[_Recorded]) -> dict[str, dict[float, float]]:
    """Return the use of all containers of each host."""
    found: dict[str, dict[float, float]] = {}
    for one in recorded:
        sums = found.setdefault(one.record.host, {})
        for use in one.uses:
            sums[use.end.time] = sums.get(use.end.time, 0.0) + use.cores
    return found


def _with_unique_names(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs, with a number behind names that another job has."""
    found: dict[str, Job] = {}
    for job in jobs:
        name, number = job.name, 2
        while name in found:
            name, number = f"{job.name}-{number}", number + 1
        found[name] = replace(job, name=name)
    return list(found.values())


def _curve_table(
    points: Sequence[SeriesPoint], uses: Sequence[CpuUse], works: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Return (share of the work, value) of up to 200 points; between samples the work grows
    evenly."""
    stride = max(1, math.ceil(len(points) / _MOST_POINTS))
    found, at = [], 0
    for time, value in sorted(points)[::stride]:
        while at < len(uses) - 1 and uses[at].end.time <= time:
            at += 1
        begin, span = uses[at].begin.time, uses[at].span_s
        share = min(1.0, max(0.0, (time - begin) / span if span > 0 else 0.0))
        found.append(((works[at] + (works[at + 1] - works[at]) * share) / works[-1], value))
    return tuple(found)
