"""Recordings of progress alone, read as jobs that share one CPU equally.

Old logs say when a job's loss fell, not what CPU that took. So that any policy can replay them,
each host with nothing but progress gets a node row of one CPU. From its first point to its last,
each job gets an equal part of that CPU, as under Docker alone. Ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dltools.observations.schema import SAMPLED, Kind
from dltools.observations.table import Row, concat, hosts_of, is_one_of, to_table
from dltools.text import listed

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_SAMPLES = 5_000
"""Samples that a host gets at most: a year of logs needs no more to show its curves."""

_CPUS = 1.0


@dataclass(slots=True)
class _Job:
    """A job's name, its first and last point, and the CPU seconds it has used so far."""

    name: str | None
    first: datetime
    last: datetime
    used: float = 0.0


def with_equal_shares(
    tables: Iterable[pa.Table], tell: Callable[[str], object]
) -> Iterator[pa.Table]:
    """Yield the tables of a recording, with node and container rows for each host of which they
    have progress alone; call `tell` with a line that names such hosts.

    Whether a host has other rows is known at the end of the recording: from the first table on in
    which one has none yet, the rest is yielded as one.
    """
    sampled: set[str] = set()
    rest = iter(tables)
    for table in rest:
        sampled |= hosts_of(table, SAMPLED)
        if not hosts_of(table, (Kind.PROGRESS,)) - sampled:
            yield table
            continue
        whole = concat([table, *rest])
        hosts = sorted(hosts_of(whole, (Kind.PROGRESS,)) - sampled - hosts_of(whole, SAMPLED))
        if hosts:
            tell(f"{listed(hosts)}: only progress is known: equal shares of one CPU are assumed")
        yield _with_rows(whole, hosts) if hosts else whole


def _with_rows(table: pa.Table, hosts: Iterable[str]) -> pa.Table:
    """Return the table with node and container rows for these hosts."""
    progress = table.filter(is_one_of(table.column("kind"), (Kind.PROGRESS,)))
    rows: list[Row] = []
    for host in hosts:
        of_host = progress.filter(is_one_of(progress.column("host"), (host,)))
        jobs = _jobs(of_host)
        rows += _rows(host, jobs, _sample_times(jobs, of_host.column("time").to_pylist()))
    more = to_table(rows).select(table.column_names)
    return concat([table, more])


def _jobs(progress: pa.Table) -> dict[str, _Job]:
    """Return the jobs of a host's points, which are in order of time, by container id."""
    jobs: dict[str, _Job] = {}
    columns = (progress.column(name).to_pylist() for name in ("container_id", "container_name"))
    for key, name, time in zip(*columns, progress.column("time").to_pylist(), strict=True):
        if key is None:
            continue
        job = jobs.setdefault(key, _Job(name, time, time))
        job.name, job.last = name, time
    return jobs


def _sample_times(jobs: Mapping[str, _Job], points: Iterable[datetime]) -> list[datetime]:
    """Return when a host is sampled: when jobs begin and end, and at some of the points."""
    ends = {time for job in jobs.values() for time in (job.first, job.last)}
    times = sorted(set(points))
    return sorted(ends.union(times[:: -(-len(times) // _MOST_SAMPLES) or 1]))


def _rows(host: str, jobs: Mapping[str, _Job], times: Iterable[datetime]) -> list[Row]:
    """Return the host's node and container rows at these times."""
    rows: list[Row] = []
    before: datetime | None = None
    for now in times:
        rows.append({"time": now, "host": host, "kind": "node", "cpu_count": _CPUS})
        running = {key: job for key, job in jobs.items() if job.first <= now <= job.last}
        if before is not None:
            sharing = [job for job in running.values() if job.first <= before]
            for job in sharing:
                job.used += (now - before).total_seconds() * _CPUS / len(sharing)
        before = now
        rows += [
            {
                "time": now,
                "host": host,
                "kind": "container",
                "container_id": key,
                "container_name": job.name,
                "state": "running",
                "started_at": job.first,
                "cpu_seconds": job.used,
                "cpu_limit_cores": _CPUS,
            }
            for key, job in running.items()
        ]
    return rows
