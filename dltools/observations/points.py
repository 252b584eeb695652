"""Progress points: values that containers reported, as plain lists by container and metric."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple


class Point(NamedTuple):
    """A value that a container reported: `time` in microseconds, `epoch` NaN where unknown."""

    container_id: str
    metric: str
    time: int
    value: float
    step: int | None
    epoch: float


@dataclass(slots=True)
class Points:
    """Progress points of one container and metric, in order of time; `at` is the next to read."""

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    at: int = 0

    def upto(self, time: int) -> int:
        """Return how many points are not later than a time, but at least `at`."""
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


def points_by_metric(points: Sequence[Point]) -> PointsByMetric:
    """Return points by container and metric, in order of time."""
    found: PointsByMetric = {}
    for point in sorted(points, key=attrgetter("time")):
        series = found.setdefault(point.container_id, {}).setdefault(point.metric, Points())
        series.times.append(point.time)
        series.values.append(point.value)
        series.steps.append(point.step)
        series.epochs.append(point.epoch)
    return found


def points_after(points: Mapping[str, Mapping[str, Points]], time: int | None) -> list[Point]:
    """Return the points after a time, in order of time; all of them where the time is None."""
    found: list[Point] = []
    for container_id, own in points.items():
        for metric, series in own.items():
            at = 0 if time is None else bisect.bisect_right(series.times, time)
            columns = (series.times, series.values, series.steps, series.epochs)
            found += [
                Point(container_id, metric, *point)
                for point in zip(*(column[at:] for column in columns), strict=True)
            ]
    return sorted(found, key=attrgetter("time", "container_id", "metric"))
