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
    """Progress points of one container and metric, in order of time. The lists are of one length,
    but the last three may be empty, where nobody tells any."""

    times: list[int] = field(default_factory=list)
    """When each was reported (microseconds)."""

    values: list[float] = field(default_factory=list)
    """What was reported, NaN where a job printed that."""

    steps: list[int | None] = field(default_factory=list)
    """The steps that the job tells, None where it tells none."""

    epochs: list[float] = field(default_factory=list)
    """The epochs that the job tells, NaN where it tells none."""

    epoch_counts: list[int | None] = field(default_factory=list)
    """How many epochs the job says that it will train, None where it does not say it."""

    step_counts: list[int | None] = field(default_factory=list)
    """How many steps the job says that it will train, None where it does not say it."""

    at: int = field(default=0, kw_only=True)
    """The index of the next point to read."""

    def upto(self, time: int) -> int:
        """Return how many points are not later than a time, but at least `at`."""
        return bisect.bisect_right(self.times, time, self.at)


PointsByMetric = dict[str, dict[str, Points]]
"""By container id, then by metric."""


class DeviceUse(NamedTuple):
    """What a container uses of a device."""

    ratio: float
    """The share of time in which it had work there, 0 to 1; NaN if unknown."""

    memory: int | None = None
    """The bytes that it holds there, None if unknown."""

    limit: int | None = None
    """The memory of the device in bytes, None if unknown."""

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
    """Which containers run at a sample: lists with an element for each."""

    ids: list[str] = field(default_factory=list)
    """The engine's ids."""

    started: list[int | None] = field(default_factory=list)
    """When each was started (microseconds), None if unknown."""

    labels: list[str | None] = field(default_factory=list)
    """The text of their labels, None for none."""

    roles: list[str | None] = field(default_factory=list)
    """Their roles, None where nothing says so."""

    names: list[str | None] = field(default_factory=list)
    """Their names, None for none."""

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
    """A host's samples."""

    times: list[int]
    """When each was taken (microseconds)."""

    first_rows: list[int]
    """The position of each sample's first row in the table."""

    sizes: list[float]
    """CPUs of the host at each, NaN if unknown."""

    busy: list[float]
    """The CPU seconds that everything on the host has used up to each, NaN if unknown."""

    bounds: list[int]
    """The container rows of sample i are from `bounds[i]` to before `bounds[i + 1]`."""

    rows: Rows
    """The container rows of all samples, by column."""

    points: PointsByMetric
    """All progress points."""

    devices: DeviceUses = field(default_factory=dict)
    """The use of devices."""

    cannot: list[str | None] = field(default_factory=list)
    """What the host's engine can do with no container, as text; None where it is not said."""

    cores: str | None = None
    """The CPUs of each core, joined by +; None where each has one."""

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
