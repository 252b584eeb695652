"""From tables of observations to each host's samples."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dltools.observations.column_lists import (
    buffer_values,
    integers,
    optional_integers,
    reals,
    texts,
)
from dltools.observations.points import Point, Points, PointsByMetric, points_by_metric
from dltools.observations.samples import (
    INTEGERS,
    REALS,
    ROW_COLUMNS,
    TEXTS,
    HostSamples,
    Remainder,
    Rows,
    without_duplicates,
)
from dltools.observations.schema import Kind
from dltools.observations.table import is_one_of

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 1 << 16
"""Rows that are lists at one time, so that memory does not grow with the recording."""

SAMPLE_COLUMNS = (
    "time",
    "host",
    "kind",
    "cpu_count",
    "metric",
    "value",
    "step",
    "epoch",
    *ROW_COLUMNS,
)
"""The columns that decide; no other is read."""

_RUNNING = ("running", "paused", "restarting")


def table_chunks(table: pa.Table) -> Iterator[pa.Table]:
    """Yield a table's columns that decide, some rows at a time."""
    table = table.select(list(SAMPLE_COLUMNS)).unify_dictionaries()
    for at in range(0, table.num_rows, CHUNK_ROWS):
        yield table.slice(at, CHUNK_ROWS)


def newest_time(table: pa.Table) -> int | None:
    """Return the newest time (microseconds) of the rows that decide, None where there are none."""
    import pyarrow.compute as pc

    counted = is_one_of(table.column("kind"), (Kind.NODE, Kind.CONTAINER, Kind.PROGRESS))
    latest: int | None = pc.max(table.column("time").cast("int64").filter(counted)).as_py()
    return latest


def samples_by_host(
    table: pa.Table,
    remainders: Mapping[str, Remainder] | None = None,
    sampled_at: Mapping[str, int | None] | None = None,
) -> dict[str, HostSamples]:
    """Return each host's samples in a table, behind those that earlier tables have left.

    Samples that are not later than the host's last complete one (`sampled_at`, microseconds) are
    passed over. Hosts that only have a remainder are left out.
    """
    import pyarrow as pa

    table = table.append_column("position", pa.array(range(table.num_rows), pa.int64()))
    hosts = table.column("host")
    found = {}
    names = hosts.unique().to_pylist()
    for name in names:
        own = table if len(names) == 1 else table.filter(is_one_of(hosts, (name,)))
        remainder = (remainders or {}).get(name) or Remainder()
        found[name] = _host_samples(own, remainder, (sampled_at or {}).get(name))
    return found


@dataclass(slots=True)
class _Timed:
    """Rows in order of time: times, positions in the table, and columns."""

    times: list[int]
    positions: list[int]
    columns: Rows

    def later_than(self, time: int) -> _Timed:
        """Return the rows after a time."""

        at = bisect.bisect_right(self.times, time)
        if at == 0:
            return self
        columns = {name: column[at:] for name, column in self.columns.items()}
        return _Timed(self.times[at:], self.positions[at:], columns)

    def behind(self, time: int, columns: Rows) -> _Timed:
        """Return the rows behind earlier ones of one time."""
        many = len(next(iter(columns.values())))
        joined = {name: columns[name] + self.columns[name] for name in self.columns}
        return _Timed([time] * many + self.times, [-1] * many + self.positions, joined)

    def in_order(self) -> _Timed:
        """Return the rows in order of time."""
        order = sorted(range(len(self.times)), key=self.times.__getitem__)
        return _Timed(
            [self.times[i] for i in order],
            [self.positions[i] for i in order],
            {name: [column[i] for i in order] for name, column in self.columns.items()},
        )


def _host_samples(table: pa.Table, remainder: Remainder, sampled_at: int | None) -> HostSamples:
    kinds = table.column("kind")
    nodes, containers, progress = (
        table.filter(is_one_of(kinds, (kind,)))
        for kind in (Kind.NODE, Kind.CONTAINER, Kind.PROGRESS)
    )
    columns = {
        **{name: texts(containers, name) for name in TEXTS},
        **{name: reals(containers, name) for name in REALS},
        **{name: optional_integers(containers, name) for name in INTEGERS},
    }
    rows = _Timed(integers(containers, "time"), integers(containers, "position"), columns)
    sizes = _Timed(integers(nodes, "time"), integers(nodes, "position"),
                   {"size": reals(nodes, "cpu_count")})  # fmt: skip
    if sampled_at is not None:
        rows, sizes = rows.later_than(sampled_at), sizes.later_than(sampled_at)
    if remainder.time is not None:
        many, time = len(remainder.rows["container_id"]), remainder.time
        rows = rows.behind(time, remainder.rows)
        sizes = sizes.behind(time, {"size": [remainder.size]})
        if any(one < time for one in (*rows.times[: many + 1], *sizes.times[:2])):
            rows, sizes = rows.in_order(), sizes.in_order()
    samples = _grouped_by_time(rows, sizes)
    samples.points = _points(progress, remainder.points)
    return without_duplicates(_running_only(samples))


def _grouped_by_time(rows: _Timed, sizes: _Timed) -> HostSamples:
    times = rows.times
    starts = [0, *(i for i in range(1, len(times)) if times[i] != times[i - 1])] if times else []
    begins = {times[i]: i for i in starts}
    size_at: dict[int, float] = {}
    position_at = {times[i]: rows.positions[i] for i in starts}
    for time, position, size in zip(
        sizes.times, sizes.positions, sizes.columns["size"], strict=True
    ):
        is_valid = 0 < size < math.inf
        if is_valid or time not in size_at:
            size_at[time] = size if is_valid else math.nan
        position_at[time] = min(position, position_at.get(time, position))
    ordered = sorted(position_at)
    bounds, at = [], len(times)
    for time in reversed(ordered):
        at = begins.get(time, at)
        bounds.append(at)
    bounds.reverse()
    return HostSamples(
        ordered,
        [position_at[time] for time in ordered],
        [size_at.get(time, math.nan) for time in ordered],
        [*bounds, len(times)],
        rows.columns,
        {},
    )


def _running_only(samples: HostSamples) -> HostSamples:
    """Leave out rows without an id and rows of containers that do not run."""
    states, ids = samples.rows["state"], samples.rows["container_id"]
    stopped = {state for state in set(states) if state and state not in _RUNNING}
    if not stopped and all(ids):
        return samples
    kept = [i for i, (key, state) in enumerate(zip(ids, states, strict=True))
            if key and state not in stopped]  # fmt: skip
    return samples.with_rows(kept)


def _points(progress: pa.Table, earlier: Sequence[Point]) -> PointsByMetric:
    """Return earlier points and those of a table, by container and metric, in order of time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = points_by_metric(earlier)
    progress = progress.filter(pc.is_valid(progress.column("value")))
    ids, names = (progress.column(c).combine_chunks() for c in ("container_id", "metric"))
    progress = progress.filter(pc.and_(pc.is_valid(ids), pc.is_valid(names)))
    if progress.num_rows == 0:
        return found
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
        key, metric = id_words[groups[low] // many], name_words[groups[low] % many]
        if not key or not metric:
            continue
        points = found.setdefault(key, {}).setdefault(metric, Points())
        is_late = bool(points.times) and points.times[-1] > times[low]
        points.times += times[low:high]
        points.values += values[low:high]
        points.steps += steps[low:high]
        points.epochs += epochs[low:high]
        if is_late:
            points.sort()
    return found
