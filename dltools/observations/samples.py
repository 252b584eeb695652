"""A host's samples as plain lists: what the planner and the readers of recordings walk over.

A host's node and container rows of one time are a sample. The container rows of all samples stand
in one set of lists, so that as long as the same containers run, every n-th element is one
container's.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TEXTS = ("container_id", "container_name", "state", "labels", "cpuset")
REALS = ("cpu_seconds", "cpu_limit_cores", "cpu_weight", "turn_seconds")
INTEGERS = ("started_at", "thread_count")
ROW_COLUMNS = (*TEXTS, *REALS, *INTEGERS)
"""The columns of `HostSamples.rows`."""

Rows = dict[str, list[Any]]
Point = tuple[str, str, int, float, int | None, float]
"""Container id, metric, microseconds, value, step, epoch (NaN: unknown)."""


@dataclass(slots=True)
class Points:
    """Progress points of one container and metric, in order of time; `at` is the next to read."""

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    at: int = 0

    def upto(self, time: int) -> int:
        """Return the index behind the last point not later than a time."""
        return bisect.bisect_right(self.times, time, self.at)

    def sort(self) -> None:
        """Put the points in order of time."""
        order = sorted(range(len(self.times)), key=self.times.__getitem__)
        self.times = [self.times[i] for i in order]
        self.values = [self.values[i] for i in order]
        self.steps = [self.steps[i] for i in order]
        self.epochs = [self.epochs[i] for i in order]


PointsByMetric = dict[str, dict[str, Points]]
"""By container id, then by metric."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which containers run at a sample: their ids, when they started, the text of their labels."""

    ids: list[str] = field(default_factory=list)
    started: list[int | None] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)

    def containers(self) -> Iterator[tuple[str, int | None, str | None]]:
        """Yield id, start and labels of each."""
        return zip(self.ids, self.started, self.labels, strict=True)


@dataclass(slots=True)
class HostSamples:
    """A host's samples.

    `times`: microseconds. `sizes`: CPUs of the host (NaN: unknown). `first_rows`: where in the
    table each sample's first row stands. `bounds`: of each sample's container rows in `rows`.
    """

    times: list[int]
    first_rows: list[int]
    sizes: list[float]
    bounds: list[int]
    rows: Rows
    points: PointsByMetric

    @classmethod
    def empty(cls) -> HostSamples:
        """Return no samples."""
        return cls([], [], [], [0], {}, {})

    def layout(self, number: int) -> Layout:
        """Return which containers run at a sample."""
        low, high = self.bounds[number], self.bounds[number + 1]
        return Layout(
            self.rows["container_id"][low:high],
            self.rows["started_at"][low:high],
            self.rows["labels"][low:high],
        )

    def with_rows(self, kept: Sequence[int]) -> HostSamples:
        """Return the samples with some of their container rows alone."""
        rows = {name: [column[i] for i in kept] for name, column in self.rows.items()}
        bounds = [bisect.bisect_left(kept, bound) for bound in self.bounds]
        return HostSamples(self.times, self.first_rows, self.sizes, bounds, rows, self.points)


@dataclass(slots=True)
class Remainder:
    """What samples leave for the next table: the last sample, of which more rows may come (`time`
    None: there is none), and the points after the last complete one."""

    time: int | None = None
    size: float = math.nan
    rows: Rows = field(default_factory=lambda: {name: [] for name in ROW_COLUMNS})
    points: list[Point] = field(default_factory=list)


def pending_sample(remainder: Remainder) -> HostSamples:
    """Return the one sample that a remainder holds, without doubled rows."""
    points = points_by_metric(remainder.points)
    if remainder.time is None:
        return HostSamples([], [], [], [0], remainder.rows, points)
    bounds = [0, len(remainder.rows["container_id"])]
    samples = HostSamples([remainder.time], [-1], [remainder.size], bounds, remainder.rows, points)
    return without_duplicates(samples)


def without_duplicates(samples: HostSamples) -> HostSamples:
    """Keep the last of rows that name the same container at the same sample."""
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


def points_by_metric(points: Sequence[Point]) -> PointsByMetric:
    """Return points by container and metric, in order of time."""
    found: PointsByMetric = {}
    for key, metric, time, value, step, epoch in sorted(points, key=lambda point: point[2]):
        group = found.setdefault(key, {}).setdefault(metric, Points())
        group.times.append(time)
        group.values.append(value)
        group.steps.append(step)
        group.epochs.append(epoch)
    return found


def points_after(points: Mapping[str, Mapping[str, Points]], time: int | None) -> list[Point]:
    """Return the points after a time, in order of time; all of them where the time is None."""
    found: list[Point] = []
    for key, own in points.items():
        for metric, group in own.items():
            at = 0 if time is None else bisect.bisect_right(group.times, time)
            columns = (group.times, group.values, group.steps, group.epochs)
            found += [
                (key, metric, *point)
                for point in zip(*(column[at:] for column in columns), strict=True)
            ]
    return sorted(found, key=lambda point: (point[2], point[0], point[1]))
