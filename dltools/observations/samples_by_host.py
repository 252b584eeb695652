"""From a table of observations to the samples of each host, as `HostSamples`.

dl-plan reads its input so, one table after the other: the rows of the last sample, of which more
may come, and those after it go before the next table. Rows of one kind become lists by host, then
samples by time; points become series by container and metric.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from dltools.observations.device_rows import DEVICE_COLUMNS
from dltools.observations.host_samples import (
    ROW_COLUMNS,
    DeviceUse,
    DeviceUses,
    HostSamples,
    Points,
    PointsByMetric,
    Rows,
    without_duplicates,
)
from dltools.observations.schema import COLUMNS, SAMPLED, Kind, Type
from dltools.observations.table import (
    buffer_values,
    integers,
    is_one_of,
    optional_integers,
    reals,
    texts,
)

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 1 << 16
"""Rows that become lists at one time, so that memory does not grow with the recording."""

SAMPLE_COLUMNS = (
    "time",
    "host",
    "kind",
    "cpu_count",
    "cpu_siblings",
    *chain.from_iterable(DEVICE_COLUMNS.values()),
    "metric",
    "value",
    "step",
    "epoch",
    "epoch_count",
    "step_count",
    *ROW_COLUMNS,
)
"""The columns that decisions depend on; no other is read."""

_TYPES = {column.name: column.type for column in COLUMNS}
_READERS = {
    Type.NAME: texts,
    Type.FLOAT: reals,
    Type.INT: optional_integers,
    Type.TIME: optional_integers,
}
"""What returns a column: texts, numbers (NaN: unknown), and whole numbers or times in microseconds
(None: unknown)."""

_SELDOM = ("epoch", "epoch_count", "step_count")
"""The columns of points that few jobs tell."""

_PLACE = ("time", "position", "host")
_OF_HOST = ("cpu_count", "cpu_seconds", "cannot", "cpu_siblings")
_COLUMNS_OF: Mapping[str, Sequence[str]] = {
    Kind.NODE: (*_PLACE, *_OF_HOST),
    Kind.CONTAINER: (*_PLACE, *ROW_COLUMNS),
    Kind.PROGRESS: ("time", "host", "container_id", "metric", "value", "step", *_SELDOM),
    **{kind: (*_PLACE, "container_id", *columns) for kind, columns in DEVICE_COLUMNS.items()},
}
"""The columns of each kind that are read: to filter others would take most of the time."""

_NEVER = -(2**63)

_RUNNING = ("running", "paused", "restarting")


def table_chunks(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the columns that decisions depend on, some rows of a table at a time."""
    table = table.select(list(SAMPLE_COLUMNS)).unify_dictionaries()
    for at in range(0, max(1, table.num_rows), CHUNK_ROWS):
        yield table.slice(at, CHUNK_ROWS)


def newest_time(table: pa.Table) -> int | None:
    """Return the newest time (microseconds) of the samples and points, None without any."""
    import pyarrow.compute as pc

    counted = is_one_of(table.column("kind"), (*SAMPLED, Kind.PROGRESS))
    latest: int | None = pc.max(table.column("time").cast("int64").filter(counted)).as_py()
    return latest


def rows_after(table: pa.Table, times: Mapping[str, int | None]) -> pa.Table:
    """Return the rows of samples and points after a time of each host (microseconds), where that is
    known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    hosts = table.column("host").combine_chunks()
    bounds = [times.get(name) for name in hosts.dictionary.to_pylist()]
    bound = pa.array([_NEVER if time is None else time for time in bounds], pa.int64())
    is_later = pc.greater(table.column("time").cast("int64"), bound.take(hosts.indices))
    return table.filter(pc.and_(is_later, is_one_of(table.column("kind"), tuple(_COLUMNS_OF))))


def samples_by_host(
    table: pa.Table, sampled_at: Mapping[str, int | None] | None = None
) -> dict[str, HostSamples]:
    """Return the samples of each host that has rows in a table. Rows that are not later than the
    host's last complete sample (`sampled_at`, microseconds) are ignored."""
    import pyarrow as pa

    positions = pa.array(list(range(table.num_rows)), pa.int64())
    table = table.append_column("position", positions)
    nodes, containers, progress, *devices = (
        table.select(list(columns)).filter(is_one_of(table.column("kind"), (kind,)))
        for kind, columns in _COLUMNS_OF.items()
    )
    sizes, rows, *device_rows = map(_by_host, (nodes, containers, *devices))
    points = _points_by_host(progress)
    by_host = {}
    for name in table.column("host").unique().to_pylist():
        last = (sampled_at or {}).get(name)
        no_rows = _TimedRows([], [], {column: [] for column in ROW_COLUMNS})
        no_sizes = _TimedRows([], [], {column: [] for column in _OF_HOST})
        of_containers, of_host = rows.get(name, no_rows), sizes.get(name, no_sizes)
        samples = _grouped_by_time(of_containers.later_than(last), of_host.later_than(last))
        samples.points = points.get(name, {})
        for of_kind in device_rows:
            if name in of_kind:
                _add_uses(samples.devices, of_kind[name].later_than(last))
        by_host[name] = without_duplicates(_running_only(samples))
    return by_host


@dataclass(slots=True)
class _TimedRows:
    """Rows: their times (microseconds), positions in the table, and columns."""

    times: list[int]
    positions: list[int]
    columns: Rows

    def later_than(self, time: int | None) -> _TimedRows:
        """Return the rows after a time, all for None."""
        at = 0 if time is None else bisect.bisect_right(self.times, time)
        if at == 0:
            return self
        columns = {name: column[at:] for name, column in self.columns.items()}
        return _TimedRows(self.times[at:], self.positions[at:], columns)


def _by_host(table: pa.Table) -> dict[str, _TimedRows]:
    """Return rows of one kind by host. All become lists at once: of many hosts each has few."""
    import pyarrow.compute as pc

    if table.num_rows == 0:
        return {}
    codes = table.column("host").combine_chunks().indices
    if len(codes.unique()) > 1:
        table = table.take(pc.array_sort_indices(codes))  # stable
    hosts = texts(table, "host")
    names = (name for name in table.column_names if name not in _PLACE)
    columns = {name: _values(table, name) for name in names}
    times, positions = integers(table, "time"), integers(table, "position")
    starts = [0, *(i for i in range(1, len(hosts)) if hosts[i] != hosts[i - 1]), len(hosts)]
    if len(starts) == 2:
        return {hosts[0]: _TimedRows(times, positions, columns)}
    return {
        hosts[low]: _TimedRows(
            times[low:high],
            positions[low:high],
            {name: column[low:high] for name, column in columns.items()},
        )
        for low, high in pairwise(starts)
    }


def _values(table: pa.Table, name: str) -> list[Any]:
    """Return a column. A host's size is NaN only where it was not reached, and may be infinite."""
    import pyarrow.compute as pc

    if name == "cpu_count":
        return buffer_values(pc.fill_null(table.column(name).combine_chunks(), math.nan), "d")
    return _READERS[_TYPES[name]](table, name)


def _grouped_by_time(rows: _TimedRows, sizes: _TimedRows) -> HostSamples:
    times = rows.times
    starts = [0, *(i for i in range(1, len(times)) if times[i] != times[i - 1])] if times else []
    begins = {times[i]: i for i in starts}
    size_at: dict[int, float] = {}
    busy_at: dict[int, float] = {}
    cannot_at: dict[int, str | None] = {}
    position_at = {times[i]: rows.positions[i] for i in starts}
    columns = (sizes.columns[name] for name in _OF_HOST)
    cores = None
    for time, position, size, busy, cannot, said in zip(
        sizes.times, sizes.positions, *columns, strict=True
    ):
        is_valid = 0 < size < math.inf
        if math.isnan(size) and time not in begins:
            continue  # the host was not reached then: what runs there is not known
        if is_valid or time not in size_at:
            size_at[time] = size if is_valid else math.nan
        if math.isfinite(busy):
            busy_at[time] = busy
        cannot_at[time] = cannot or ""
        cores = said or cores
        position_at[time] = min(position, position_at.get(time, position))
    ordered = sorted(position_at)
    return HostSamples(
        ordered,
        [position_at[time] for time in ordered],
        [size_at.get(time, math.nan) for time in ordered],
        [busy_at.get(time, math.nan) for time in ordered],
        [*(bisect.bisect_left(times, time) for time in ordered), len(times)],
        rows.columns,
        {},
        cannot=[cannot_at.get(time) for time in ordered],
        cores=cores,
    )


def _running_only(samples: HostSamples) -> HostSamples:
    """Leave out rows without an id and rows of containers that do not run."""
    states, ids = samples.rows["state"], samples.rows["container_id"]
    stopped = {state for state in set(states) if state and state not in _RUNNING}
    if not stopped and all(ids):
        return samples
    kept = [
        i
        for i, (key, state) in enumerate(zip(ids, states, strict=True))
        if key and state not in stopped
    ]
    return samples.with_rows(kept)


def _add_uses(uses: DeviceUses, rows: _TimedRows) -> None:
    """Add the use of the devices of one kind of a host."""
    for time, key, name, ratio, *sizes in zip(rows.times, *rows.columns.values(), strict=True):
        if key and name:
            memory, limit = (size if size is None or size >= 0 else None for size in sizes)
            use = DeviceUse(ratio if 0 <= ratio <= 1 else math.nan, memory, limit)
            uses.setdefault(time, {}).setdefault(key, {})[name] = use


def _points_by_host(progress: pa.Table) -> dict[str, PointsByMetric]:
    """Return the points in rows of kind `progress` by host, each in order of the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in ("value", "container_id", "metric"):
        if progress.column(name).null_count:
            progress = progress.filter(pc.is_valid(progress.column(name)))
    by_host: dict[str, PointsByMetric] = {}
    if not progress.num_rows:
        return by_host
    hosts, ids, names = (
        progress.column(column).combine_chunks() for column in ("host", "container_id", "metric")
    )
    many, most = len(names.dictionary), len(ids.dictionary)
    owners = pc.add(pc.multiply(hosts.indices.cast(pa.int64()), most), ids.indices)
    keys = pc.add(pc.multiply(owners, many), names.indices)
    order = pc.array_sort_indices(keys)  # stable
    ordered = progress.take(order)
    unknown = {name for name in _SELDOM if ordered.column(name).null_count == len(ordered)}
    columns: tuple[list[Any], ...] = (
        integers(ordered, "time"),
        buffer_values(ordered.column("value").combine_chunks(), "d"),
        optional_integers(ordered, "step"),
        *([] if name in unknown else _values(ordered, name) for name in _SELDOM),
    )
    groups = buffer_values(keys.take(order), "q")
    starts = [0, *(i for i in range(1, len(groups)) if groups[i] != groups[i - 1]), len(groups)]
    host_words, id_words, name_words = (
        words.dictionary.to_pylist() for words in (hosts, ids, names)
    )
    for low, high in pairwise(starts):
        owner, metric = divmod(groups[low], many)
        host, container_id = (host_words[owner // most], id_words[owner % most])
        if container_id and name_words[metric]:
            own = by_host.setdefault(host, {}).setdefault(container_id, {})
            own[name_words[metric]] = Points(*(column[low:high] for column in columns))
    return by_host
