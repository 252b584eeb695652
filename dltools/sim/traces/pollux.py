"""Pollux's workloads (Qiao et al., OSDI 2021): name, time, application, replicas and batch size.

How long an application takes is not in the file. It is taken from the profiles that the authors
published.
"""

from __future__ import annotations

import math

from dltools.errors import DataError
from dltools.sim.traces.rows import Row, check_columns, rows_of
from dltools.sim.workload import Job

GPU_SECONDS = {
    "cifar10": 4_060.0,
    "bert": 13_600.0,
    "deepspeech2": 19_400.0,
    "yolov3": 33_700.0,
    "imagenet": 532_000.0,
    "ncf": 1_800.0,
}
"""GPU seconds of each application: iterations of the smallest batch, times a step's time on one GPU
without synchronisation (petuum/adaptdl, simulator/traces and applications.py: 39,070 of 0.104 s;
14,774 of 0.92 s; 28,539 of 0.68 s; 103,444 of 0.326 s; 576,526 of 0.92 s). The step time of ncf is
not published: its value is the middle of its class, up to an hour."""

_COLUMNS = ("name", "time", "application", "num_replicas")


def pollux_jobs(text: str, name: str) -> list[Job]:
    """Return the jobs of a workload. Raises `DataError` with the line and what is wrong."""
    check_columns(text, _COLUMNS, name, "a Pollux workload")
    return [_job(row) for row in rows_of(text, name)]


def _job(row: Row) -> Job:
    where, values = row
    work = GPU_SECONDS.get(values["application"] or "")
    if work is None:
        known = ", ".join(GPU_SECONDS)
        raise DataError(f"{where}: unknown application {values['application']!r}; known: {known}")
    try:
        arrival, replicas = float(values["time"]), int(values["num_replicas"])
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: {error}") from error
    if not 0 <= arrival < math.inf or replicas <= 0:
        raise DataError(f"{where}: time must not be below 0, num_replicas must be more than 0")
    return Job(values["name"], arrival, work, replicas, spin=0.0)
