"""A host's samples as plain lists, which the planner and the readers of recordings go through.

A host's node and container rows of one time are a sample. The container rows of all samples are in
one set of lists: as long as the same n containers run, every n-th element belongs to one of them.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dltools.observations.gpu_use import GpuUses
from dltools.observations.points import Point, PointsByMetric, points_by_metric
from dltools.observations.schema import COLUMNS, Type

ROW_COLUMNS = (
    "container_id",
    "container_name",
    "state",
    "labels",
    "cpuset",
    "openmp_runtime",
    "openmp_settings",
    "cgroup_parent",
    "job",
    "owner_cpuset",
    "role",
    "role_reason",
    "turn_queue",
    "cpu_seconds",
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

_TYPES = {column.name: column.type for column in COLUMNS}
TEXTS = tuple(name for name in ROW_COLUMNS if _TYPES[name] is Type.NAME)
REALS = tuple(name for name in ROW_COLUMNS if _TYPES[name] is Type.FLOAT)
INTEGERS = tuple(name for name in ROW_COLUMNS if _TYPES[name] in (Type.INT, Type.TIME))
"""Those of `ROW_COLUMNS` whose values are texts, numbers (NaN: unknown), and whole numbers or times
in microseconds (None: unknown)."""

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
        mine, others = (
            set(zip(one.ids, one.started, one.labels, one.roles, one.names, strict=True))
            for one in (self, other)
        )
        return mine == others


@dataclass(slots=True)
class HostSamples:
    """A host's samples.

    `times`: microseconds. `sizes`: CPUs of the host, and `busy`: the CPU seconds that everything on
    it has used (NaN: unknown). `first_rows`: the position of each sample's first row in the table.
    `rows`: the container rows of all samples by column; those of sample i are from `bounds[i]` to
    before `bounds[i + 1]`. `points`: all progress points. `gpus`: the use of GPUs.
    """

    times: list[int]
    first_rows: list[int]
    sizes: list[float]
    busy: list[float]
    bounds: list[int]
    rows: Rows
    points: PointsByMetric
    gpus: GpuUses = field(default_factory=dict)

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


@dataclass(slots=True)
class Remainder:
    """What is kept for the next table: the last sample, of which more rows may come, and the points
    and GPU rows after the last complete sample. `time` (microseconds) is None where there is no
    such sample."""

    time: int | None = None
    size: float = math.nan
    busy: float = math.nan
    rows: Rows = field(default_factory=lambda: {name: [] for name in ROW_COLUMNS})
    points: list[Point] = field(default_factory=list)
    gpus: GpuUses = field(default_factory=dict)


def pending_sample(remainder: Remainder) -> HostSamples:
    """Return the one sample that a remainder holds, with one row for each container."""
    points = points_by_metric(remainder.points)
    if remainder.time is None:
        return HostSamples([], [], [], [], [0], remainder.rows, points, remainder.gpus)
    bounds = [0, len(remainder.rows["container_id"])]
    samples = HostSamples(
        [remainder.time],
        [-1],
        [remainder.size],
        [remainder.busy],
        bounds,
        remainder.rows,
        points,
        remainder.gpus,
    )
    return without_duplicates(samples)


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
