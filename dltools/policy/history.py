"""What is remembered of a container: its progress points and CPU counter, as far back as needed.

Times are integer microseconds since the epoch, so that window borders are exact. Points may come
late, twice, or out of order; values may be NaN or infinite. Nothing here raises on data.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.labels import PROTECT, is_true

MICRO = 1_000_000

JITTER = 0.05
"""Share of an interval by which samples may come early (ours): two that should be an interval apart
may be some milliseconds less, and a round should not wait for the sample after."""


@dataclass(slots=True)
class Series:
    """Points of one metric in order of time: `times` (microseconds), `values`, `steps` (or None).

    `peak` is the largest finite absolute value seen since the job started.
    """

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    peak: float = 0.0

    def add(self, time: int, value: float, step: int | None) -> None:
        """Insert a point, unless the very same was reported already."""
        if math.isfinite(value):
            self.peak = max(self.peak, abs(value))
        at = bisect.bisect_right(self.times, time)
        twin = at
        while twin > 0 and self.times[twin - 1] == time:
            twin -= 1
            if self.steps[twin] == step and repr(self.values[twin]) == repr(value):
                return
        self.times.insert(at, time)
        self.values.insert(at, value)
        self.steps.insert(at, step)

    def window(self, after: int, until: int) -> list[float]:
        """Return the values with `after` < time <= `until`."""
        low = bisect.bisect_right(self.times, after)
        return self.values[low : bisect.bisect_right(self.times, until)]

    def forget(self, until: int) -> None:
        """Drop the points with time <= `until`; the peak stays."""
        low = bisect.bisect_right(self.times, until)
        del self.times[:low], self.values[:low], self.steps[:low]


@dataclass(slots=True)
class Track:
    """One container: identity, limits in force, counter samples and metrics.

    `arrived` is when it was first seen (it starts anew when the container restarts); `samples`
    are (microseconds, cumulative CPU seconds); `cpus` the quota in force in cores and `weight` the
    relative weight, None where unknown.
    """

    id: str
    name: str
    host: str
    arrived: int
    started: int | None = None
    state: str = "running"
    labels: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    weight: float | None = None
    threads: int | None = None
    samples: list[tuple[int, float]] = field(default_factory=list)
    metrics: dict[str, Series] = field(default_factory=dict)

    def add_point(self, metric: str, time: int, value: float, step: int | None) -> None:
        """Remember a progress point."""
        self.metrics.setdefault(metric, Series()).add(time, value, step)

    def add_sample(self, time: int, cpu_seconds: float) -> None:
        """Remember a counter sample; one that goes back in time or count starts the record anew."""
        if self.samples and (time <= self.samples[-1][0] or cpu_seconds < self.samples[-1][1]):
            self.samples.clear()
        self.samples.append((time, cpu_seconds))

    def forget(self, until: int) -> None:
        """Drop what no window that starts at `until` or later needs."""
        for series in self.metrics.values():
            series.forget(until)
        at = bisect.bisect_right(self.samples, (until, math.inf))
        if at > 1:
            del self.samples[: at - 1]

    @property
    def protected(self) -> bool:
        """Whether its owner forbids any change."""
        return is_true(self.labels.get(PROTECT))


def number_to_json(value: float) -> float | str:
    """Return a number, or the text from which `float` restores NaN or an infinity."""
    return value if math.isfinite(value) else str(value)


def to_json(track: Track) -> dict[str, Any]:
    """Return a track as JSON values. NaN and the infinities become strings."""
    return {
        "name": track.name,
        "host": track.host,
        "arrived": track.arrived,
        "started": track.started,
        "state": track.state,
        "labels": dict(track.labels),
        "cpus": track.cpus,
        "weight": track.weight,
        "threads": track.threads,
        "samples": [list(sample) for sample in track.samples],
        "metrics": {
            name: {
                "peak": series.peak,
                "points": [
                    [time, number_to_json(value), step]
                    for time, value, step in zip(
                        series.times, series.values, series.steps, strict=True
                    )
                ],
            }
            for name, series in track.metrics.items()
        },
    }


def from_json(id_: str, data: Mapping[str, Any]) -> Track:
    """Return the track that `to_json` gave. Raises KeyError, TypeError or ValueError."""
    metrics = {}
    for name, series in data["metrics"].items():
        points = series["points"]
        metrics[name] = Series(
            times=[int(point[0]) for point in points],
            values=[float(point[1]) for point in points],
            steps=[point[2] for point in points],
            peak=float(series["peak"]),
        )
    return Track(
        id=id_,
        name=data["name"],
        host=data["host"],
        arrived=data["arrived"],
        started=data["started"],
        state=data["state"],
        labels=data["labels"],
        cpus=data["cpus"],
        weight=data["weight"],
        threads=data["threads"],
        samples=[(int(time), float(seconds)) for time, seconds in data["samples"]],
        metrics=metrics,
    )
