"""The samples of each host in a table of observations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dltools.observations.column_lists import integers, optional_integers, reals, texts
from dltools.observations.points import points_by_metric
from dltools.observations.points_in_table import add_points
from dltools.observations.samples import (
    INTEGERS,
    REALS,
    ROW_COLUMNS,
    TEXTS,
    HostSamples,
    Remainder,
    without_duplicates,
)
from dltools.observations.schema import SAMPLED, Kind
from dltools.observations.table import is_one_of
from dltools.observations.timed_rows import TimedRows

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 1 << 16
"""Rows that become lists at one time, so that memory does not grow with the recording."""

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
"""The columns that decisions depend on; no other is read."""

_RUNNING = ("running", "paused", "restarting")


def table_chunks(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the columns that decisions depend on, some rows of a table at a time."""
    table = table.select(list(SAMPLE_COLUMNS)).unify_dictionaries()
    for at in range(0, table.num_rows, CHUNK_ROWS):
        yield table.slice(at, CHUNK_ROWS)


def newest_time(table: pa.Table) -> int | None:
    """Return the newest time (microseconds) of the samples and points, None without any."""
    import pyarrow.compute as pc

    counted = is_one_of(table.column("kind"), (*SAMPLED, Kind.PROGRESS))
    latest: int | None = pc.max(table.column("time").cast("int64").filter(counted)).as_py()
    return latest


def samples_by_host(
    table: pa.Table,
    remainders: Mapping[str, Remainder] | None = None,
    sampled_at: Mapping[str, int | None] | None = None,
) -> dict[str, HostSamples]:
    """Return the samples in a table by host, after those that remain of earlier tables.

    Rows of samples that are not later than the host's last complete one (`sampled_at`,
    microseconds) are ignored. Hosts that have no rows in the table are left out.
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
    rows = TimedRows(integers(containers, "time"), integers(containers, "position"), columns)
    sizes = TimedRows(integers(nodes, "time"), integers(nodes, "position"),
                   {"size": reals(nodes, "cpu_count")})  # fmt: skip
    if sampled_at is not None:
        rows, sizes = rows.later_than(sampled_at), sizes.later_than(sampled_at)
    if remainder.time is not None:
        many, time = len(remainder.rows["container_id"]), remainder.time
        rows = rows.with_earlier(time, remainder.rows)
        sizes = sizes.with_earlier(time, {"size": [remainder.size]})
        if any(one < time for one in (*rows.times[: many + 1], *sizes.times[:2])):
            rows, sizes = rows.in_order(), sizes.in_order()
    samples = _grouped_by_time(rows, sizes)
    samples.points = add_points(points_by_metric(remainder.points), progress)
    return without_duplicates(_running_only(samples))


def _grouped_by_time(rows: TimedRows, sizes: TimedRows) -> HostSamples:
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
