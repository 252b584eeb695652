"""The progress points in a table of observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dltools.observations.column_lists import buffer_values, integers, optional_integers, reals
from dltools.observations.points import Points, PointsByMetric

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one container and metric."""

    container_id: str
    metric: str
    points: Points


def series_by_host(progress: pa.Table) -> dict[str, list[Series]]:
    """Return the series in rows of kind `progress` by host, each in order of the rows."""
    import pyarrow.compute as pc

    for name in ("value", "container_id", "metric"):
        progress = progress.filter(pc.is_valid(progress.column(name)))
    found: dict[str, list[Series]] = {}
    for host, series in _series(progress) if progress.num_rows else ():
        found.setdefault(host, []).append(series)
    return found


def with_series(points: PointsByMetric, found: Iterable[Series]) -> PointsByMetric:
    """Return points and series of one host together, in order of time."""
    for series in found:
        group = points.setdefault(series.container_id, {}).setdefault(series.metric, Points())
        is_late = bool(group.times) and group.times[-1] > series.points.times[0]
        group.times += series.points.times
        group.values += series.points.values
        group.steps += series.points.steps
        group.epochs += series.points.epochs
        if is_late:
            group.sort()
    return points


def _series(progress: pa.Table) -> Iterator[tuple[str, Series]]:
    """Yield host and series of rows of progress, which have container, metric and value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    hosts, ids, names = (
        progress.column(column).combine_chunks() for column in ("host", "container_id", "metric")
    )
    many, most = len(names.dictionary), len(ids.dictionary)
    owners = pc.add(pc.multiply(hosts.indices.cast(pa.int64()), most), ids.indices)
    keys = pc.add(pc.multiply(owners, many), names.indices)
    order = pc.array_sort_indices(keys)  # stable
    ordered = progress.take(order)
    times, steps = integers(ordered, "time"), optional_integers(ordered, "step")
    values = buffer_values(ordered.column("value").combine_chunks(), "d")
    epochs = reals(ordered, "epoch")
    groups = buffer_values(keys.take(order), "q")
    starts = [0, *(i for i in range(1, len(groups)) if groups[i] != groups[i - 1]), len(groups)]
    host_words, id_words, name_words = (
        words.dictionary.to_pylist() for words in (hosts, ids, names)
    )
    for low, high in pairwise(starts):
        owner, metric = divmod(groups[low], many)
        host, container_id = (host_words[owner // most], id_words[owner % most])
        if container_id and name_words[metric]:
            points = Points(times[low:high], values[low:high], steps[low:high], epochs[low:high])
            yield host, Series(container_id, name_words[metric], points)
