"""Recordings of progress alone, read as jobs that share one CPU equally.

Old logs say when a job's loss fell, not what CPU that took. So that any policy can replay them,
each host with nothing but progress gets a node row of one CPU. From its first point to its last,
each job gets an equal part of that CPU, as under Docker alone. Ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dltools.observations.schema import Kind
from dltools.observations.table import Row, concat, is_one_of, to_table

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_SAMPLES = 5_000
"""Samples that a host gets at most: a year of logs needs no more to show its curves."""

_CPUS = 1.0


@dataclass(frozen=True, slots=True)
class Assumed:
    """A table with the rows that were assumed, and the hosts that they were assumed for."""

    table: pa.Table
    hosts: list[str]


@dataclass(slots=True)
class _Job:
    """A job's name, its first and last point, and the CPU seconds it has used so far."""

    name: str | None
    first: datetime
    last: datetime
    used: float = 0.0


def assume_equal_shares(table: pa.Table) -> Assumed:
    """Return the table with node and container rows for each host that has progress alone."""
    kinds, named = table.column("kind"), table.column("host")
    counted = {Kind.NODE, Kind.CONTAINER} & set(kinds.unique().to_pylist())
    if table.num_rows == 0 or (counted and len(named.unique()) == 1):
        return Assumed(table, [])
    known = set(named.filter(is_one_of(kinds, (Kind.NODE, Kind.CONTAINER))).unique().to_pylist())
    reported = is_one_of(kinds, (Kind.PROGRESS,))
    hosts = sorted(set(named.filter(reported).unique().to_pylist()) - known)
    if not hosts:
        return Assumed(table, [])
    progress = table.filter(reported)
    rows: list[Row] = []
    for host in hosts:
        of_host = progress.filter(is_one_of(progress.column("host"), (host,)))
        jobs = _jobs(of_host)
        rows += _rows(host, jobs, _sample_times(jobs, of_host.column("time").to_pylist()))
    more = to_table(rows).select(table.column_names)
    return Assumed(concat([table, more]), hosts)


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
