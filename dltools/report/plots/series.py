"""Series of a timeline made ready to be drawn."""

from __future__ import annotations

from itertools import pairwise

from dltools.observations.containers import Series, SeriesPoint

_MOST_POINTS = 1000


def thinned(series: Series, most: int = _MOST_POINTS) -> Series:
    """Return a series of at most so many points: means of neighbours, at the last one's time."""
    size = -(-len(series) // most)
    if size <= 1:
        return series
    parts = (series[at : at + size] for at in range(0, len(series), size))
    return [SeriesPoint(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def changes(series: Series) -> Series:
    """Return the points of a series of steps at which its value changes, and its last point."""
    last = len(series) - 1
    found = [
        point for at, point in enumerate(series) if at in (0, last) or point[1] != series[at - 1][1]
    ]
    return thinned(found)


def area(series: Series) -> float:
    """Return the sum of a series of rates over time."""
    return sum(value * (time - before) for (before, _), (time, value) in pairwise(series))
