"""From a table of observations to the containers in it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dltools import labels
from dltools.notation.times import MICRO
from dltools.observations.column_lists import integers, optional_integers, texts
from dltools.observations.containers import (
    ContainerRecord,
    ContainerRecords,
    ContainerSample,
    HostRecord,
    SeriesPoint,
)
from dltools.observations.gpu_use import GpuUses
from dltools.observations.points import PointsByMetric
from dltools.observations.samples import HostSamples
from dltools.observations.samples_by_host import samples_by_host, table_chunks
from dltools.observations.schema import DEFAULT_CPU_WEIGHT, Kind
from dltools.observations.table import is_one_of

if TYPE_CHECKING:
    import pyarrow as pa

_Key = tuple[str, str]
"""Host and container id."""
_Containers = dict[_Key, ContainerRecord]


def read_containers(table: pa.Table) -> ContainerRecords:
    """Return the hosts and containers of a recording whose rows are in order of time.

    A host of which nothing but progress is known has containers without samples. Where the columns
    of events are missing, no exit is known.
    """
    hosts: dict[str, HostRecord] = {}
    containers: _Containers = {}
    _add_unsampled(table, containers)
    for chunk in table_chunks(table):
        for name, samples in samples_by_host(chunk).items():
            _add_host(hosts.setdefault(name, HostRecord(name)), samples)
            _add_samples(name, samples, containers)
            _add_points(name, samples.points, containers)
            _add_gpus(name, samples.gpus, containers)
    exits = _exits(table) if "event" in table.column_names else {}
    for key, (time, code) in exits.items():
        if key in containers:
            containers[key].exited, containers[key].exit_code = time, code
    return ContainerRecords(list(hosts.values()), list(containers.values()))


def _add_host(host: HostRecord, samples: HostSamples) -> None:
    host.cpus = max([host.cpus, *(size for size in samples.sizes if size > 0)])
    if samples.times:
        host.last_sampled = samples.times[-1] / MICRO


def _add_samples(host: str, samples: HostSamples, containers: _Containers) -> None:
    ids = samples.rows["container_id"]
    for number, micros in enumerate(samples.times):
        for row in range(samples.bounds[number], samples.bounds[number + 1]):
            key = (host, ids[row])
            if key not in containers:
                time = micros / MICRO
                containers[key] = ContainerRecord(*key, "", first_seen=time, last_seen=time)
            _add_sample(containers[key], samples, number, row)


def _add_sample(container: ContainerRecord, samples: HostSamples, number: int, row: int) -> None:
    """Add one row of the sample of this number."""
    rows = samples.rows
    container.name = rows["container_name"][row] or container.id[:12]
    container.last_seen = samples.times[number] / MICRO
    container.threads = max(container.threads, rows["thread_count"][row] or 1)
    if rows["labels"][row]:
        container.labels = labels.parse_labels(rows["labels"][row])
    if rows["started_at"][row] is not None:
        container.started = rows["started_at"][row] / MICRO
    container.role = rows["role"][row] or container.role
    container.job = rows["job"][row] or container.job
    container.owner_cpus = rows["owner_cpu_limit_cores"][row]
    container.owner_weight = rows["owner_cpu_weight"][row]
    weight = rows["cpu_weight"][row]
    container.samples.append(
        ContainerSample(
            container.last_seen,
            samples.sizes[number],
            rows["state"][row] or "running",
            container.started,
            rows["cpu_seconds"][row],
            rows["cpu_limit_cores"][row],
            DEFAULT_CPU_WEIGHT if math.isnan(weight) else weight,
            rows["cpuset"][row] or "",
            rows["turn_seconds"][row],
            rows["turn_queue"][row] or "",
        )
    )


def _add_points(host: str, points: PointsByMetric, containers: _Containers) -> None:
    for container_id, by_metric in points.items():
        container = containers.get((host, container_id))
        if container is None:
            continue
        for metric, new in by_metric.items():
            container.series.setdefault(metric, []).extend(
                SeriesPoint(micros / MICRO, value)
                for micros, value in zip(new.times, new.values, strict=True)
            )


def _add_gpus(host: str, uses: GpuUses, containers: _Containers) -> None:
    for by_container in uses.values():
        for container_id, held in by_container.items():
            if (host, container_id) in containers:
                containers[host, container_id].gpus.update(held)


def _add_unsampled(table: pa.Table, containers: _Containers) -> None:
    """Add the containers of hosts of which nothing but progress is known, as of a saved log."""
    kinds = table.column("kind")
    sampled = table.filter(is_one_of(kinds, (Kind.NODE, Kind.CONTAINER)))
    sampled_hosts = set(sampled.column("host").unique().to_pylist())
    points = table.filter(is_one_of(kinds, (Kind.PROGRESS,)))
    names = (texts(points, name) for name in ("host", "container_id", "container_name"))
    for host, container, name, micros in zip(*names, integers(points, "time"), strict=True):
        if not container or host in sampled_hosts:
            continue
        time = micros / MICRO
        found = containers.get((host, container))
        if found is None:
            found = containers[host, container] = ContainerRecord(
                host, container, "", time, time, is_sampled=False, started=time
            )
        found.name = name or container[:12]
        found.last_seen = time


def _exits(table: pa.Table) -> dict[_Key, tuple[float, int | None]]:
    """Return the time and code of the exit of the containers whose last event is one, not another
    start."""
    events = table.filter(is_one_of(table.column("kind"), (Kind.EVENT,)))
    events = events.filter(is_one_of(events.column("event"), ("start", "exit")))
    last: dict[_Key, tuple[float, int | None]] = {}
    names = (texts(events, name) for name in ("host", "container_id", "event"))
    whens = zip(integers(events, "time"), optional_integers(events, "exit_code"), strict=True)
    for host, container, event, (micros, code) in zip(*names, whens, strict=True):
        last.pop((host, container), None)
        if event == "exit":
            last[host, container] = micros / MICRO, code
    return last
