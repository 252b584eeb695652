"""A host's samples as plain lists, which dl-plan goes through: containers, points, use of devices.

A host's node and container rows of one time are a sample. The container rows of all samples are in
one set of lists: as long as the same n containers run, every n-th element belongs to one of them.
`dltools.observations.samples_by_host` reads them from a table. This module needs no Arrow, so that
policies may use it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple


@dataclass(slots=True)
class Points:
    """Progress points of one container and metric, in order of time; `at` is the next to read.

    `times` are microseconds; an epoch is NaN where it is unknown. `epoch_counts` and `step_counts`
    are how many the job says that it will train, None where it does not say it. These three may be
    empty, where nobody tells any.
    """

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    epoch_counts: list[int | None] = field(default_factory=list)
    step_counts: list[int | None] = field(default_factory=list)
    at: int = field(default=0, kw_only=True)

    def upto(self, time: int) -> int:
        """Return how many points are not later than a time, but at least `at`."""
        return bisect.bisect_right(self.times, time, self.at)


PointsByMetric = dict[str, dict[str, Points]]
"""By container id, then by metric."""


class DeviceUse(NamedTuple):
    """What a container uses of a device: the share of time in which it had work there (NaN:
    unknown), the bytes that it holds, and the device's memory (bytes; None: unknown)."""

    ratio: float
    memory: int | None = None
    limit: int | None = None

    def joined(self, other: DeviceUse) -> DeviceUse:
        """Return what two containers use of it; what is unknown of one is unknown."""
        is_known = self.memory is not None and other.memory is not None
        memory = (self.memory or 0) + (other.memory or 0) if is_known else None
        ratio = self.ratio + other.ratio
        return DeviceUse(ratio if math.isnan(ratio) else min(1.0, ratio), memory, self.limit)


DeviceUses = dict[int, dict[str, dict[str, DeviceUse]]]
"""By time (microseconds), container and device."""

ROW_COLUMNS = (
    "container_id",
    "container_name",
    "state",
    "labels",
    "cpuset",
    "openmp_runtime",
    "openmp_settings",
    "thread_pools",
    "cgroup_parent",
    "cannot",
    "job",
    "user",
    "owner_cpuset",
    "role",
    "role_reason",
    "turn_queue",
    "cpu_seconds",
    "cpu_throttled_seconds",
    "cpu_limit_cores",
    "cpu_weight",
    "turn_seconds",
    "demand_cores",
    "owner_cpu_limit_cores",
    "owner_cpu_weight",
    "started_at",
    "thread_count",
    "job_containers",
)
"""The columns of `HostSamples.rows`."""

Rows = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which containers run at a sample: their ids, when they started, the text of their labels,
    their roles and their names."""

    ids: list[str] = field(default_factory=list)
    started: list[int | None] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    roles: list[str | None] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)

    def containers(self) -> Iterator[tuple[str, int | None, str | None]]:
        """Yield id, start and labels of each."""
        return zip(self.ids, self.started, self.labels, strict=True)

    def is_reordered(self, other: Layout) -> bool:
        """Tell whether another layout has the same containers, if in another order."""
        columns = fields(Layout)
        mine, others = (
            set(zip(*(getattr(layout, column.name) for column in columns), strict=True))
            for layout in (self, other)
        )
        return mine == others


@dataclass(slots=True)
class HostSamples:
    """A host's samples.

    `times`: microseconds. `sizes`: CPUs of the host, and `busy`: the CPU seconds that everything on
    it has used (NaN: unknown). `first_rows`: the position of each sample's first row in the table.
    `cannot`: what its engine can do with no container, as text (None: not said). `cores`: the CPUs
    of each core, joined by +, None where each has one.
    `rows`: the container rows of all samples by column; those of sample i are from `bounds[i]` to
    before `bounds[i + 1]`. `points`: all progress points. `devices`: the use of devices.
    """

    times: list[int]
    first_rows: list[int]
    sizes: list[float]
    busy: list[float]
    bounds: list[int]
    rows: Rows
    points: PointsByMetric
    devices: DeviceUses = field(default_factory=dict)
    cannot: list[str | None] = field(default_factory=list)
    cores: str | None = None

    @classmethod
    def empty(cls) -> HostSamples:
        """Return no samples."""
        return cls([], [], [], [], [0], {}, {})

    def layout(self, number: int) -> Layout:
        """Return which containers run at a sample."""
        low, high = self.bounds[number], self.bounds[number + 1]
        return Layout(
            self.rows["container_id"][low:high],
            self.rows["started_at"][low:high],
            self.rows["labels"][low:high],
            self.rows["role"][low:high],
            self.rows["container_name"][low:high],
        )

    def with_rows(self, kept: Sequence[int]) -> HostSamples:
        """Return the samples with only these of their container rows, whose positions ascend."""
        rows = {name: [column[i] for i in kept] for name, column in self.rows.items()}
        bounds = [bisect.bisect_left(kept, bound) for bound in self.bounds]
        return replace(self, bounds=bounds, rows=rows)


def without_duplicates(samples: HostSamples) -> HostSamples:
    """Return samples in which each container has one row: the last of those that name it."""
    ids = samples.rows["container_id"]
    spans = list(zip(samples.bounds, samples.bounds[1:], strict=False))
    last: list[str] = []
    for low, high in spans:
        layout = ids[low:high]
        if layout != last and len(set(layout)) != len(layout):
            break
        last = layout
    else:
        return samples
    kept: list[int] = []
    for low, high in spans:
        kept += sorted({ids[i]: i for i in range(low, high)}.values())
    return samples.with_rows(kept)
