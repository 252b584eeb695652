"""The progress points in a table of observations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dltools.observations.column_lists import buffer_values, integers, optional_integers, reals
from dltools.observations.points import Points, PointsByMetric

if TYPE_CHECKING:
    import pyarrow as pa


def add_points(points: PointsByMetric, progress: pa.Table) -> PointsByMetric:
    """Add the points in rows of kind `progress`, and return all, in order of time."""
    import pyarrow.compute as pc

    progress = progress.filter(pc.is_valid(progress.column("value")))
    ids, names = (progress.column(c).combine_chunks() for c in ("container_id", "metric"))
    progress = progress.filter(pc.and_(pc.is_valid(ids), pc.is_valid(names)))
    for series in _series(progress) if progress.num_rows else ():
        group = points.setdefault(series.container_id, {}).setdefault(series.metric, Points())
        is_late = bool(group.times) and group.times[-1] > series.points.times[0]
        group.times += series.points.times
        group.values += series.points.values
        group.steps += series.points.steps
        group.epochs += series.points.epochs
        if is_late:
            group.sort()
    return points


@dataclass(frozen=True, slots=True)
class _Series:
    """The points of one container and metric."""

    container_id: str
    metric: str
    points: Points


def _series(progress: pa.Table) -> Iterator[_Series]:
    """Yield the series in rows of progress, which have container, metric and value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids, names = (progress.column(c).combine_chunks() for c in ("container_id", "metric"))
    many = len(names.dictionary)
    keys = pc.add(pc.multiply(ids.indices.cast(pa.int64()), many), names.indices)
    order = pc.array_sort_indices(keys)  # stable
    ordered = progress.take(order)
    times, steps = integers(ordered, "time"), optional_integers(ordered, "step")
    values = buffer_values(ordered.column("value").combine_chunks(), "d")
    epochs = reals(ordered, "epoch")
    groups = buffer_values(keys.take(order), "q")
    starts = [0, *(i for i in range(1, len(groups)) if groups[i] != groups[i - 1]), len(groups)]
    id_words, name_words = ids.dictionary.to_pylist(), names.dictionary.to_pylist()
    for low, high in pairwise(starts):
        container_id, metric = id_words[groups[low] // many], name_words[groups[low] % many]
        if container_id and metric:
            points = Points(times[low:high], values[low:high], steps[low:high], epochs[low:high])
            yield _Series(container_id, metric, points)
