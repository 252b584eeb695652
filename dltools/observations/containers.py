"""What a recording tells of a container over time: its samples, its CPU use, its progress.

Times are seconds since the epoch; NaN stands for what is unknown.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from dltools.notation.cpu_lists import parse_cpus
from dltools.observations import metric_names

PAUSED = "paused"


class SeriesPoint(NamedTuple):
    """A value and when it held."""

    time: float
    value: float


Series = list[SeriesPoint]
"""Points in order of time."""


class ContainerSample(NamedTuple):
    """A container at one sample of its host.

    `host_cpus` and `cpu_limit` are cores; `cpu_limit` is the quota in force. `started`: when its
    main process was last started. `cpu_seconds`: its counter. `cpu_weight`: Docker's default where
    it is unknown. `turn_queue`: the GPU for which it takes turns, "" for CPUs.
    """

    time: float
    host_cpus: float
    state: str
    started: float
    cpu_seconds: float
    cpu_limit: float
    cpu_weight: float
    cpuset: str
    turn_s: float
    turn_queue: str = ""

    @property
    def is_paused(self) -> bool:
        """Whether its processes are frozen."""
        return self.state == PAUSED

    def allowed_cores(self) -> float:
        """Return the cores that state, quota and CPU list allow, NaN where they are unknown."""
        if self.is_paused:
            return 0.0
        listed = _count(self.cpuset)
        return min(self.cpu_limit, float(listed)) if listed else self.cpu_limit


@dataclass(frozen=True, slots=True)
class CpuUse:
    """The CPU seconds that a container used between two of its samples."""

    begin: ContainerSample
    end: ContainerSample
    seconds: float

    @property
    def span_s(self) -> float:
        """Seconds between the samples."""
        return self.end.time - self.begin.time

    @property
    def cores(self) -> float:
        """Cores that it used in the mean, 0 where no time has passed."""
        return self.seconds / self.span_s if self.span_s > 0 else 0.0


@dataclass(slots=True)
class ContainerRecord:
    """One container of a recording.

    `is_sampled` is false for a container of which nothing but progress is known, as of a saved log:
    it has no samples. `threads` is the most that were alive at one time. `exited` is NaN unless its
    last event was an exit, `exit_code` None unless that had a code. `series` are its progress
    points by metric. `role` is the last one that dl-probe saw, "" for none; `gpus` are the GPUs
    that it held. `job` is the job that it is a member of, "" for none. `owner_cpus` (NaN: none) and
    `owner_weight` are what its owner asked for.
    """

    host: str
    id: str
    name: str
    first_seen: float
    last_seen: float
    is_sampled: bool = True
    started: float = math.nan
    labels: dict[str, str] = field(default_factory=dict)
    threads: int = 1
    samples: list[ContainerSample] = field(default_factory=list)
    series: dict[str, Series] = field(default_factory=dict)
    role: str = ""
    gpus: set[str] = field(default_factory=set)
    job: str = ""
    owner_cpus: float = math.nan
    owner_weight: float = math.nan
    exit_code: int | None = None
    exited: float = math.nan

    def counted_samples(self) -> list[ContainerSample]:
        """Return the samples that know its CPU counter."""
        return [sample for sample in self.samples if not math.isnan(sample.cpu_seconds)]

    def cpu_uses(self) -> Iterator[CpuUse]:
        """Yield what it used between the samples that know its counter.

        The counter begins at 0 when the container is started again. Where no sample says when that
        was, a counter that falls shows it.
        """
        for begin, end in pairwise(self.counted_samples()):
            used = end.cpu_seconds - begin.cpu_seconds
            yield CpuUse(begin, end, end.cpu_seconds if _restarted(begin, end) else max(0.0, used))

    def cpu_seconds_since(self, begin: float) -> float:
        """Return the CPU seconds that it used while it was recorded, those before its first sample
        included if it was started after a time."""
        first = next(iter(self.counted_samples()), None)
        before = first.cpu_seconds if first is not None and first.started > begin else 0.0
        return before + math.fsum(use.seconds for use in self.cpu_uses())


def main_metric(series: Mapping[str, Series], wanted: str | None) -> str:
    """Return which metric judges a job that has reported these, "" where it has reported none: the
    `wanted` one of its label, where that has ever been finite, else the first in order."""
    known = {
        name: metric_names.seen(point.value for point in points) for name, points in series.items()
    }
    if wanted is not None and wanted in known and known[wanted].points:
        return wanted
    return next(iter(metric_names.evaluation_order(known)), "")


@dataclass(slots=True)
class HostRecord:
    """One host of a recording: the most CPUs that it was seen to have (0: unknown), and the time of
    its last sample."""

    name: str
    cpus: float = 0.0
    last_sampled: float = math.nan


@dataclass(frozen=True, slots=True)
class ContainerRecords:
    """The hosts and containers of a recording."""

    hosts: Sequence[HostRecord]
    containers: Sequence[ContainerRecord]

    @property
    def last_sampled(self) -> float:
        """Time of the last sample of all hosts, infinity where there is none."""
        times = [host.last_sampled for host in self.hosts if not math.isnan(host.last_sampled)]
        return max(times, default=math.inf)


@functools.lru_cache(maxsize=256)
def _count(cpuset: str) -> int:
    return len(parse_cpus(cpuset))


def _restarted(begin: ContainerSample, end: ContainerSample) -> bool:
    if math.isnan(begin.started) or math.isnan(end.started):
        return end.cpu_seconds < begin.cpu_seconds
    return end.started > begin.started
