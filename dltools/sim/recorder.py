"""A simulation as dl-probe would have recorded it: observations in the one schema."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.observations.table import Row, to_table

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.sim.host import Machine, Run

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
"""When virtual time begins in the observations."""


class Recorder:
    """Collects a sample of a machine whenever it is called: an observer of `Simulation`."""

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        self._rows: list[Row] = []

    def __call__(self, now: float, machine: Machine) -> None:
        """Record a machine's node, its containers, and what they have said."""
        time = _moment(now)
        host = machine.spec.name
        self._rows.append(
            {"time": time, "host": host, "kind": "node", "cpu_count": machine.spec.cpus,
             "cpu_seconds": machine.spent}
        )  # fmt: skip
        for run in machine.runs.values():
            self._rows.append(_container(run, machine, time))
        for run, said, metric, value, step in machine.said:
            self._rows.append(
                {"time": _moment(said), "host": host, "kind": "progress",
                 "container_id": _id(run), "container_name": run.job.name, "metric": metric,
                 "value": value, "step": step, "source": "simulated"}
                | ({} if step is None else {"epoch": float(step)})
            )  # fmt: skip
        machine.said.clear()

    def table(self) -> pa.Table:
        """Return all that was recorded."""
        return to_table(self._rows)


def _container(run: Run, machine: Machine, time: datetime) -> Row:
    from dltools.sim.host import labels_text

    quota = run.limits.cpus
    return {
        "time": time, "host": machine.spec.name, "kind": "container", "container_id": _id(run),
        "container_name": run.job.name, "state": "running", "labels": labels_text(run.job),
        "started_at": _moment((run.track.started or 0) / 1e6), "cpu_seconds": run.cpu,
        "cpu_limit_cores": machine.spec.cpus if quota is None else quota,
        "cpu_weight": run.limits.weight or DEFAULT_CPU_WEIGHT, "thread_count": run.job.threads,
    }  # fmt: skip


def _id(run: Run) -> str:
    return hashlib.sha256(run.track.id.encode()).hexdigest()


def _moment(seconds: float) -> datetime:
    return BEGUN + timedelta(microseconds=round(seconds * 1e6))
