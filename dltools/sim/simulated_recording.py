"""Records a simulation as dl-probe would, for `dl-sim --record`."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from dltools.notation.limits import ASKED, IN_FORCE, as_columns
from dltools.notation.times import MICRO
from dltools.observations.device_rows import device_cells
from dltools.observations.table import Row, to_table
from dltools.sim import devices
from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.training_and_serving import Report
from dltools.sim.workload import labels_text, role_of

if TYPE_CHECKING:
    import pyarrow as pa


BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the observations at which virtual time begins."""


class Recorder:
    """Collects a sample of a host at each call. It serves as `Observer.observe`."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def __call__(self, now: float, host: SimulatedHost) -> None:
        """Record a host, its containers, and their reports since the last call."""
        node: Row = {
            "time": _moment(now),
            "host": host.spec.name,
            "kind": "node",
            "cpu_count": host.spec.cpus,
        }
        if not host.spec.remote:
            node["cpu_seconds"] = host.cpu_seconds
        self._rows.append(node)
        for job in host.jobs.values():
            for number in range(job.job.members):
                self._rows.append(_container_row(job, number, host, now))
                self._rows += _device_rows(job, number, host, now)
        if host.reports:
            self._rows += [_progress_row(job, report, host) for job, report in host.reports]
            host.reports.clear()

    def table(self) -> pa.Table:
        """Return all recorded observations."""
        return to_table(self._rows)


def _container_row(job: SimulatedJob, number: int, host: SimulatedHost, now: float) -> Row:
    """Return the row of the container of this number of a job."""
    limits, spec = job.limits, job.job
    role = role_of(spec, is_remote=host.spec.remote)
    quota = host.spec.cpus if limits["cpus"] is None else limits["cpus"] / spec.members
    row: Row = {
        **_whose(job, number, host, now),
        "kind": "container",
        "state": "running",
        "labels": labels_text(spec),
        "started_at": _moment((job.history.use.started or 0) / MICRO),
        "cpu_seconds": job.cpu / spec.members,
        IN_FORCE["cpus"]: quota,
        IN_FORCE["weight"]: job.weight,
        **as_columns({"cpus": spec.cpus or None, "weight": spec.cpu_weight}, ASKED),
        "thread_count": spec.threads + spec.idle_threads,
        "role": str(role.role),
        "role_reason": role.reason,
        "user": spec.user or None,
        "priority_weight": None if spec.priority == 1 else spec.priority,
        "demand_cores": None if host.spec.remote else job.demand / spec.members,
    }
    if spec.members > 1:
        row |= {"job": spec.name, "job_containers": spec.members}
    return row


def _device_rows(job: SimulatedJob, number: int, host: SimulatedHost, now: float) -> list[Row]:
    """Return a row for each device that a container holds. Members of a job hold them in turn."""
    whose = _whose(job, number, host, now)
    own = islice(devices.seen(job).items(), number, None, job.job.members)
    return [whose | device_cells(name, use) for name, use in own]


def _progress_row(job: SimulatedJob, report: Report, host: SimulatedHost) -> Row:
    row: Row = {
        **_whose(job, 0, host, report.time),
        "kind": "progress",
        "metric": job.activity.metric,
        "value": report.value,
        "step": report.epoch,
        "source": "simulated",
    }
    if report.epoch is not None:
        row["epoch"] = float(report.epoch)
    return row


def _whose(job: SimulatedJob, number: int, host: SimulatedHost, time: float) -> Row:
    """Return the cells of a row that say when it holds, and of which container of a job."""
    name, key = job.job.name, job.history.id
    return {
        "time": _moment(time),
        "host": host.spec.name,
        "container_id": hashlib.sha256((f"{key} {number}" if number else key).encode()).hexdigest(),
        "container_name": f"{name}-{number}" if job.job.members > 1 else name,
    }


def _moment(seconds: float) -> datetime:
    return BEGUN + timedelta(microseconds=round(seconds * MICRO))
