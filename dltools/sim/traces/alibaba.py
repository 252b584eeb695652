"""Alibaba's GPU trace of 2023 (Weng et al., ATC 2023), and the node lists of 2023 and 2026.

A row per pod: what CPU it asked for, from when it was scheduled until it was deleted.
"""

from __future__ import annotations

import math

from dltools.errors import DataError
from dltools.sim.traces.rows import Row, check_columns, columns_of, rows_of
from dltools.sim.workload import HostSpec, Job

_POD = ("name", "cpu_milli", "memory_mib", "creation_time", "deletion_time", "scheduled_time")


def alibaba_jobs(text: str, name: str) -> list[Job]:
    """Return the pods that ran to their end. Raises `DataError` with the line."""
    check_columns(text, _POD, name, "an Alibaba pod list")
    found = (
        _job(row)
        for row in rows_of(text, name)
        if row.values["scheduled_time"] and row.values["deletion_time"]
    )
    return [job for job in found if job is not None]


def _job(row: Row) -> Job | None:
    """Return a pod's job, None where it took no time or no CPU."""
    where, values = row
    try:
        begin, end = float(values["scheduled_time"]), float(values["deletion_time"])
        cores, arrival = float(values["cpu_milli"]) / 1000, float(values["creation_time"])
        memory = int(values["memory_mib"]) << 20
    except (ValueError, OverflowError, TypeError) as error:
        raise DataError(f"{where}: {error}") from error
    if not all(map(math.isfinite, (begin, end, cores, arrival))):
        raise DataError(f"{where}: a number is missing, or too large")
    if end <= begin or cores <= 0:
        return None
    threads = max(1, math.ceil(cores))
    return Job(values["name"], arrival, cores * (end - begin), threads, memory=memory, spin=0.0)


def alibaba_hosts(text: str, name: str) -> list[HostSpec]:
    """Return the hosts of a node list, of 2023 or of 2026. Raises `DataError` with the line."""
    known = columns_of(text, name)
    if "cpu_milli" in known and "sn" in known:
        return [_host(row, "sn", "cpu_milli", 1000.0) for row in rows_of(text, name)]
    if "cpu_num" in known and "node_name" in known:
        return [_host(row, "node_name", "cpu_num", 1.0) for row in rows_of(text, name)]
    raise DataError(f"{name}: not an Alibaba node list: no columns sn and cpu_milli")


def _host(row: Row, title: str, cores: str, unit: float) -> HostSpec:
    where, values = row
    try:
        cpus, memory = float(values[cores]) / unit, int(values.get("memory_mib") or 0) << 20
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{where}: {error}") from error
    if not 0 < cpus < 1e6 or memory < 0:
        raise DataError(f"{where}: {cores} must be more than 0")
    return HostSpec(values[title], cpus, memory)
