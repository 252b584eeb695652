"""A simulation as dl-probe would have recorded it: observations in the one schema."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dltools.notation.times import MICRO
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.observations.table import Row, to_table
from dltools.sim.labels import labels_text, role_of
from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.simulated_job import Report, SimulatedJob

if TYPE_CHECKING:
    import pyarrow as pa

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
"""When virtual time begins in the observations."""


class Recorder:
    """Collects a sample of a host whenever it is called, as `Observer.observe`."""

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        self._rows: list[Row] = []

    def __call__(self, now: float, host: SimulatedHost) -> None:
        """Record a host, its containers, and what they have reported since the last call."""
        self._rows.append(
            {"time": _moment(now), "host": host.spec.name, "kind": "node",
             "cpu_count": host.spec.cpus, "cpu_seconds": host.cpu_seconds}
        )  # fmt: skip
        self._rows += [_container_row(job, host, now) for job in host.jobs.values()]
        if host.reports:
            self._rows += [_progress_row(report, host) for report in host.reports]
            host.reports.clear()

    def table(self) -> pa.Table:
        """Return all that was recorded."""
        return to_table(self._rows)


def _container_row(job: SimulatedJob, host: SimulatedHost, now: float) -> Row:
    quota, role = job.limits.cpus, role_of(job.job)
    return {
        "time": _moment(now), "host": host.spec.name, "kind": "container",
        "container_id": _id(job), "container_name": job.job.name, "state": "running",
        "labels": labels_text(job.job), "started_at": _moment((job.history.started or 0) / MICRO),
        "cpu_seconds": job.cpu, "cpu_limit_cores": host.spec.cpus if quota is None else quota,
        "cpu_weight": job.limits.weight or DEFAULT_CPU_WEIGHT,
        "owner_cpu_weight": DEFAULT_CPU_WEIGHT, "thread_count": job.job.threads,
        "role": str(role.role), "role_reason": role.reason,
    }  # fmt: skip


def _progress_row(report: Report, host: SimulatedHost) -> Row:
    job = report.job
    row: Row = {
        "time": _moment(report.time), "host": host.spec.name, "kind": "progress",
        "container_id": _id(job), "container_name": job.job.name, "metric": job.metric,
        "value": report.value, "step": report.epoch, "source": "simulated",
    }  # fmt: skip
    if report.epoch is not None:
        row["epoch"] = float(report.epoch)
    return row


def _id(job: SimulatedJob) -> str:
    return hashlib.sha256(job.history.id.encode()).hexdigest()


def _moment(seconds: float) -> datetime:
    return BEGUN + timedelta(microseconds=round(seconds * MICRO))
