"""Turns a recording into a workload: each container becomes a job that the simulator can run again.

The work of a training is the useful part of its CPU seconds, given the contention at that time (see
`dltools.sim.cpu_sharing`). Its curve is what it reported over that work. Jobs slow each other only
while they run at the same time and the host has no idle CPU; paused jobs slow nobody. While the
host has idle CPUs, the recording also shows the start-up (one CPU before the first report) and the
share of the time in which a job sleeps. The cost of a request is its response time, multiplied by
the cores that the container used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dltools.errors import DataError
from dltools.labels import METRIC, Role
from dltools.notation.limits import DEFAULT_WEIGHT, weight_of
from dltools.notation.resources import format_cpus
from dltools.observations import judging_metric
from dltools.observations.container_records import (
    ContainerRecord,
    ContainerRecords,
    CpuUse,
    SeriesPoint,
    main_metric,
    read_containers,
)
from dltools.observations.targets import parse
from dltools.sim.cpu_sharing import CHANGE_OVER_S, speed
from dltools.sim.workload import HostSpec, Job, LearningCurve, Workload, workload_of
from dltools.text import listed

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_POINTS = 200
_HELD_BACK = 0.9
"""A quota holds back a container that uses this share of it or more."""

_FULL = 0.9
"""A host is full if this share of its CPUs is used, or more: then jobs slow each other."""
_ONE_CPU = 1.15
"""Most cores that one thread seems to use, with the errors of the samples' times."""
_FEWEST_S = 5.0
"""Least time (s) with idle CPUs that shows how much a job sleeps."""
_AWAKE = 0.9
"""A job that uses this share of the CPUs that it could use, or more, does not sleep."""

_NO_TRAININGS = (Role.SERVER, Role.INTERACTIVE, Role.OTHER)

_MOST_DAYS = 366
"""The longest recording that is replayed: one that seems longer has a wrong time in it."""

_MOST_OTHERS = 0.1
"""Processes outside containers distort a replay if they use more than this share of the CPUs."""

_UseByTime = Mapping[float, float]
"""Used cores of a host, by the time of the sample that ends the span."""


def recorded_workload(
    tables: Iterable[pa.Table], name: str, warn: Callable[[str], object] = lambda _: None
) -> Workload:
    """Return the jobs and hosts of a recording. Calls `warn` with each reason why a replay cannot
    be compared with it. Raises `DataError` if no container has a CPU counter, or if the recording
    spans more than a year: its replay would take hours."""
    records = read_containers(tables)
    cpus = {host.name: host.cpus or 1.0 for host in records.hosts}
    counted = [container.counted_samples() for container in records.containers]
    begun = min((samples[0].time for samples in counted if samples), default=0.0)
    days = (records.last_sampled - begun) / 86400
    if _MOST_DAYS < days < math.inf:
        raise DataError(f"{name}: its samples are {days:.0f} days apart: was a clock wrong?")
    uses = [tuple(container.cpu_uses()) for container in records.containers]
    used = _use_by_host(records, uses)
    recorded = [
        _Recorded(container, own, cpus.get(container.host, 1.0), used[container.host], begun)
        for container, own in zip(records.containers, uses, strict=True)
    ]
    ordered = sorted(recorded, key=lambda job: (job.record.name, job.record.host, job.record.id))
    gpus: dict[str, set[str]] = {host: set() for host in cpus}
    for job in recorded:
        gpus.setdefault(job.record.host, set()).update(job.record.gpus)
    pairs = [
        (job.record, _on_gpus(simulated, job.record.gpus, sorted(gpus[job.record.host])))
        for job in ordered
        if (simulated := job.job()) is not None
    ]
    jobs = _joined(pairs)
    if not jobs:
        raise DataError(f"{name}: no container has CPU counters, so no job can be replayed")
    for doubt in _doubts(recorded):
        warn(f"{name}: {doubt}")
    hosts = [HostSpec(host, count, gpus=len(gpus[host])) for host, count in sorted(cpus.items())]
    return workload_of(_with_unique_names(jobs), hosts, name)


@dataclass(frozen=True)
class _Recorded:
    """A container of a recording that began at `begun`, on a host of `host_cpus` CPUs. `uses` is
    its CPU use from sample to sample, `used` that of its whole host."""

    record: ContainerRecord
    uses: tuple[CpuUse, ...]
    host_cpus: float
    used: _UseByTime
    begun: float

    @property
    def arrival(self) -> float:
        """Seconds from the begin of the recording to the first sample."""
        return self.uses[0].begin.time - self.begun

    def job(self) -> Job | None:
        """Return the job, None if the container used too little to be replayed."""
        if not self.uses:
            return None
        qoe = parse(self.record.labels).qoe_s
        latencies = judging_metric.latencies(self.record.series)
        if qoe is not None or latencies:
            return self._serving(qoe, self._finite(latencies[0]) if latencies else [])
        if self.record.role in _NO_TRAININGS and not self.record.series:
            return self._program()
        return self._training()

    def _program(self) -> Job | None:
        """Return the job of a container that neither trains nor reports response times. In each
        second it uses as much CPU as the container did in the mean."""
        span, cores = self._span_and_cores()
        if cores <= 0:
            return None
        threads = math.ceil(cores)
        return Job(
            self.record.name,
            self.arrival,
            threads=threads,
            request=cores / threads,
            think=1 - cores / threads,
            duration=span,
            role=self.record.role,
            **self._owner(),
        )

    def _span_and_cores(self) -> tuple[float, float]:
        """Return the seconds between its first and last sample, and the cores used in the mean."""
        span = self.uses[-1].end.time - self.uses[0].begin.time
        return span, math.fsum(use.seconds for use in self.uses) / span if span > 0 else 0.0

    def _owner(self) -> dict[str, Any]:
        """Return the limits that the owner asked for, as far as the recording has them."""
        cpus, weight = self.record.owner.get("cpus") or 0.0, weight_of(self.record.owner)
        return {
            "cpus": cpus if 0 < cpus < self.host_cpus else 0.0,
            "cpu_weight": weight if weight > 0 else DEFAULT_WEIGHT,
        }

    def _serving(self, qoe: float | None, latencies: Sequence[SeriesPoint]) -> Job | None:
        span, cores = self._span_and_cores()
        times = [value for _, value in latencies if value > 0]
        if not times or cores <= 0:
            return None
        request = math.fsum(times) / len(times) * min(1.0, cores)
        return Job(self.record.name, self.arrival, request=request, duration=span, qoe=qoe)

    def _training(self) -> Job | None:
        begun = self._begun()
        works = self._works(begun)
        if works[-1] <= 0:
            return None
        targets = parse(self.record.labels)
        labelled = self.record.labels.get(METRIC)
        metric = targets.metric or main_metric(self.record.series, labelled) or "loss"
        points = self._finite(metric)
        table = _curve_table(points, self.uses, works)
        return Job(
            self.record.name,
            self.arrival,
            works[-1],
            self._threads,
            epochs=max(1, min(len(points) or 100, _MOST_POINTS)),
            curve=LearningCurve(metric, "points", table=table) if table else LearningCurve(),
            startup=math.fsum(use.seconds for use in self.uses[:begun]),
            first=targets.first,
            final=targets.final,
            wait=self._wait(begun),
            silent=self.record.role == Role.TRAINING and not self.record.series,
            **self._owner(),
        )

    def _finite(self, metric: str) -> list[SeriesPoint]:
        points = self.record.series.get(metric, [])
        return [point for point in points if math.isfinite(point.value)]

    @cached_property
    def _threads(self) -> int:
        """Return how many threads were busy: all that were alive, but at most the most cores that
        it ever used, rounded up."""
        alive = self.record.threads
        most = max(use.cores for use in self.uses)
        busy = max(1, math.ceil(most - 0.1))
        if alive > 1 and busy == 1 and not self._shows_its_speed:
            busy = max(1, int(self.host_cpus))  # a limit may have held back the others
        return min(alive, busy)

    @cached_property
    def _shows_its_speed(self) -> bool:
        """Whether, for some seconds after its first report, nothing held the job back."""
        first = self._first_report
        free = (use.span_s for use in self.uses if use.begin.time >= first and self._is_free(use))
        return math.fsum(free) >= _FEWEST_S

    @property
    def _first_report(self) -> float:
        reports = (points[0].time for points in self.record.series.values() if points)
        return min(reports, default=-math.inf)

    def _begun(self) -> int:
        """Return how many samples belong to the start-up of a job of several threads: those before
        its first report in which it used at most one CPU although others were idle."""
        first = self._first_report
        if self._threads == 1 or first == -math.inf:
            return 0
        count = 0
        for use in self.uses:
            has_begun = use.end.time >= first or use.cores > _ONE_CPU
            if has_begun or not (was_paused(use) or self._is_free(use)):
                break
            count += 1
        return count

    def _is_free(self, use: CpuUse) -> bool:
        """Tell whether nothing held a job back: its host had idle CPUs, and neither a quota nor a
        pause limited it."""
        is_held = was_paused(use) or use.cores >= _HELD_BACK * use.end.quota
        return not is_held and self.used.get(use.end.time, 0.0) < _FULL * self.host_cpus

    def _wait(self, begun: int) -> float:
        """Return the seconds that the job sleeps for each useful CPU second, measured while nothing
        held it back."""
        most = min(float(self._threads), self.host_cpus)
        free = [use for use in self.uses[begun:-1] if self._is_free(use)]
        span, seconds = (
            math.fsum(getattr(use, of) for use in free) for of in ("span_s", "seconds")
        )
        if span < _FEWEST_S or seconds <= 0 or seconds >= _AWAKE * most * span:
            return 0.0
        return span / seconds - 1 / most

    def _works(self, begun: int) -> list[float]:
        """Return the useful work (CPU seconds) done by each sample; start-up is no work.

        A quota costs only what it holds back. Idle CPUs were free for the job, so the use of the
        other containers shows how much they slowed it. If a job was paused for a part of the time
        between two samples, the rest was its turn, in which no other job slowed it.
        """
        threads, cpus = self._threads, self.host_cpus
        works = [0.0]
        for number, use in enumerate(self.uses):
            others = 0.0 if was_paused(use) else self.used.get(use.end.time, use.cores) - use.cores
            rate = speed(use.cores, threads, cpus, without_quota=cpus - others)
            if use.end.turn_s > 0:
                rate *= 1 - min(1.0, CHANGE_OVER_S / use.end.turn_s)
            works.append(works[-1] + (rate * use.span_s if number >= begun else 0.0))
        return works

    @property
    def has_limits(self) -> bool:
        """Whether it was ever paused, had a quota, or had another weight than Docker's default."""
        return any(
            use.end.is_paused
            or use.end.quota < self.host_cpus
            or weight_of(use.end.limits) != DEFAULT_WEIGHT
            for use in self.uses
        )

    @property
    def is_guessed(self) -> bool:
        """Whether its speed alone is a guess: limits held it back, and at no time was it
        free."""
        is_alone = self._shows_its_speed or any(map(was_paused, self.uses))
        return self.has_limits and not is_alone and self._threads > 1


def _doubts(recorded: Sequence[_Recorded]) -> Iterator[str]:
    """Yield each reason why a replay cannot be compared with the recording, and the remedy."""
    by_host: dict[str, list[_Recorded]] = {}
    for job in recorded:
        if job.uses:
            by_host.setdefault(job.record.host, []).append(job)
    for host, jobs in by_host.items():
        own: dict[float, float] = {}
        for use in (use for job in jobs for use in job.uses):
            own[use.end.time] = own.get(use.end.time, 0.0) + use.cores
        used = jobs[0].used
        others = [used[time] - cores for time, cores in own.items() if time in used]
        part = math.fsum(others) / max(1, len(others)) / jobs[0].host_cpus
        if part > _MOST_OTHERS:
            yield (
                f"processes outside containers used {part:.0%} of the CPUs of {host}; a replay "
                "leaves them out: record without them to compare"
            )
        if guessed := [job.record.name for job in jobs if job.is_guessed]:
            yield (
                f"limits held back {listed(guessed)} all the time: how fast they are alone "
                "is a guess: record under Docker alone to compare"
            )


def was_paused(use: CpuUse) -> bool:
    """Tell whether a container was paused for a part of the time between two samples: it was paused
    at one of them, or its turn is shorter than that time."""
    begin, end, span_s = use.begin, use.end, use.span_s
    return begin.is_paused or end.is_paused or begin.turn_s < span_s or end.turn_s < span_s


def _use_by_host(
    records: ContainerRecords, uses: Iterable[Sequence[CpuUse]]
) -> dict[str, dict[float, float]]:
    """Return the CPU use of each host by its own counter, which includes processes outside
    containers; for a host without a counter, the sum over its containers."""
    used: dict[str, dict[float, float]] = {}
    for container, own in zip(records.containers, uses, strict=True):
        sums = used.setdefault(container.host, {})
        for use in own:
            sums[use.end.time] = sums.get(use.end.time, 0.0) + use.cores
    for host in records.hosts:
        for (begin, before), (end, after) in pairwise(host.cpu_seconds):
            if end > begin and after >= before:
                used.setdefault(host.name, {})[end] = (after - before) / (end - begin)
    return used


def _on_gpus(job: Job, held: Collection[str], gpus: Sequence[str]) -> Job:
    """Return a job with the GPUs of the host that it held. Its sleep counts as waiting for
    them."""
    if not held:
        return job
    numbers = [number for number, name in enumerate(gpus) if name in held]
    return replace(job, gpu_list=format_cpus(numbers), device=job.wait, wait=0.0)


def _joined(pairs: Sequence[tuple[ContainerRecord, Job]]) -> list[Job]:
    """Return the jobs; several containers of one job on a host become one job."""
    members: dict[tuple[str, str], list[Job]] = {}
    for record, job in pairs:
        members.setdefault((record.host, record.job or f"alone {record.id}"), []).append(job)
    joined: list[Job] = []
    for jobs in members.values():
        serves = any(job.serves for job in jobs)
        joined += jobs if len(jobs) == 1 or serves else [_one_job(jobs)]
    return joined


def _one_job(jobs: Sequence[Job]) -> Job:
    """Return several trainings as one job, with the metric of the first one that reports."""
    reporter = next((job for job in jobs if not job.silent), jobs[0])
    numbers = {number for job in jobs for number in job.listed_gpus}
    return replace(
        reporter,
        arrival=max(job.arrival for job in jobs),
        members=len(jobs),
        work=math.fsum(job.work for job in jobs),
        threads=max(job.threads for job in jobs),
        startup=math.fsum(job.startup for job in jobs),
        gpu_list=format_cpus(sorted(numbers)),
    )


def _with_unique_names(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs, with a number added to names that come twice."""
    by_name: dict[str, Job] = {}
    for job in jobs:
        name, number = job.name, 2
        while name in by_name:
            name, number = f"{job.name}-{number}", number + 1
        by_name[name] = replace(job, name=name)
    return list(by_name.values())


def _curve_table(
    points: Sequence[SeriesPoint], uses: Sequence[CpuUse], works: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Return up to 200 pairs (share of the work, value). Between samples the work is
    interpolated."""
    stride = max(1, math.ceil(len(points) / _MOST_POINTS))
    table, at = [], 0
    for time, value in sorted(points)[::stride]:
        while at < len(uses) - 1 and uses[at].end.time <= time:
            at += 1
        begin, span = uses[at].begin.time, uses[at].span_s
        share = min(1.0, max(0.0, (time - begin) / span if span > 0 else 0.0))
        table.append(((works[at] + (works[at + 1] - works[at]) * share) / works[-1], value))
    return tuple(table)
