"""What a recording of progress alone is taken to mean: jobs that share one CPU equally.

Old logs say when a job's loss fell, not what CPU that took. So that any policy can replay them,
each host of which nothing but progress is known gets a node of one CPU, and each of its jobs,
from its first point to its last, an equal part of it: what Docker's free competition comes to.
Ours.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from dltools.observations.schema import Kind
from dltools.observations.table import concat, is_one_of, to_table

if TYPE_CHECKING:
    import pyarrow as pa

_TICKS = 5_000
"""Most ticks a host gets: a year of logs needs no more to see its curves."""

_CPUS = 1.0


def assume(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return the table, node and container rows added where there are none, and those hosts."""
    kinds, named = table.column("kind"), table.column("host")
    counted = {Kind.NODE, Kind.CONTAINER} & set(kinds.unique().to_pylist())
    if table.num_rows == 0 or (counted and len(named.unique()) == 1):
        return table, []
    known = set(named.filter(is_one_of(kinds, (Kind.NODE, Kind.CONTAINER))).unique().to_pylist())
    said = is_one_of(kinds, (Kind.PROGRESS,))
    hosts = sorted(set(named.filter(said).unique().to_pylist()) - known)
    if not hosts:
        return table, []
    progress = table.filter(said)
    rows = []
    for host in hosts:
        of_host = progress.filter(is_one_of(progress.column("host"), (host,)))
        columns = ("container_id", "container_name", "time")
        rows += _rows(host, *(of_host.column(name).to_pylist() for name in columns))
    more = to_table(rows).select(table.column_names)
    return concat([table, more]), hosts


def _rows(
    host: str, ids: list[str | None], names: list[str | None], times: list[datetime]
) -> list[dict[str, Any]]:
    spans: dict[str, tuple[str | None, datetime, datetime]] = {}
    for key, name, time in zip(ids, names, times, strict=True):
        if key is not None:
            first = spans[key][1] if key in spans else time
            spans[key] = (name, first, time)
    ticks = sorted({time for first, last in ((s[1], s[2]) for s in spans.values())
                    for time in (first, last)} | set(_thinned(sorted(set(times)))))  # fmt: skip
    used = dict.fromkeys(spans, 0.0)
    rows: list[dict[str, Any]] = []
    before: datetime | None = None
    for now in ticks:
        rows.append({"time": now, "host": host, "kind": "node", "cpu_count": _CPUS})
        running = [key for key, (_, first, last) in spans.items() if first <= now <= last]
        if before is not None:
            shared = [key for key in running if spans[key][1] <= before]
            for key in shared:
                used[key] += (now - before).total_seconds() * _CPUS / len(shared)
        before = now
        rows += [
            {
                "time": now, "host": host, "kind": "container", "container_id": key,
                "container_name": spans[key][0], "state": "running", "started_at": spans[key][1],
                "cpu_seconds": used[key], "cpu_limit_cores": _CPUS,
            }
            for key in running
        ]  # fmt: skip
    return rows


def _thinned(times: list[datetime]) -> list[datetime]:
    return times[:: -(-len(times) // _TICKS) or 1]
