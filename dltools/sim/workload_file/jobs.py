"""Jobs and kinds of jobs in a workload file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from dltools.labels import Role
from dltools.notation.cpu_lists import parse_cpus
from dltools.sim.generate import TRAININGS
from dltools.sim.workload import Job, Phase
from dltools.sim.workload_file import container_specs
from dltools.sim.workload_file.container_specs import read_container
from dltools.sim.workload_file.curves import Loader, curve_table, read_curve
from dltools.sim.workload_file.values import MOST, Table

Kinds = Mapping[str, Job]
"""Kinds of jobs by name."""

_POSITIVE = ("work", "threads", "epochs", "members", "cpu_weight")
_MAY_BE_NEGATIVE = ("first", "final")
_MOST_OF = {
    "arrival": 1e9,
    "work": 1e9,
    "startup": 1e9,
    "shutdown": 1e9,
    "request": 1e9,
    "think": 1e9,
    "duration": 1e9,
    "checkpoint": 1e9,
    "wait": 1e9,
    "device": 1e9,
    "threads": 1e6,
    "idle_threads": 1e6,
    "members": 1e6,
    "epochs": MOST,
    "memory": 2**63,
    "gpus": 1e6,
    "cpus": 1e6,
    "cpu_weight": 262144,
}
"""Bounds of what can be simulated: 1e9 seconds are 30 years, and each epoch is a report."""


def read_kinds(tables: Iterable[Table], load: Loader) -> Kinds:
    """Return the usual kinds and those of a file. Raises `DataError`."""
    kinds = {kind.name: kind for kind in TRAININGS}
    for number, table in enumerate(tables, 1):
        if "kind" in table.data:
            raise table.error("unknown key 'kind'")
        kind = _job(table, Job(f"kind-{number}"), load)
        kinds[kind.name] = kind
    return kinds


def read_jobs(tables: Iterable[Table], kinds: Kinds, load: Loader) -> list[Job]:
    """Return the jobs of a file. Raises `DataError`."""
    return [
        _job(table, _model(table, kinds, number), load) for number, table in enumerate(tables, 1)
    ]


def kind_of(named: Any, kinds: Kinds, table: Table) -> Job:
    """Return a kind by its name. Raises `DataError` that lists the known ones."""
    if not isinstance(named, str) or named not in kinds:
        raise table.error(f"no kind is called {named!r}; known: {', '.join(kinds)}")
    return kinds[named]


def _model(table: Table, kinds: Kinds, number: int) -> Job:
    """Return what a job is where its table is silent."""
    if "kind" not in table.data:
        return Job(f"job-{number}")
    kind = kind_of(table.data["kind"], kinds, table)
    return dataclasses.replace(kind, name=f"{kind.name}-{number}")


def _job(table: Table, model: Job, load: Loader) -> Job:
    curve = curve_table(table.data, table.where)
    found = table.without("curve", "kind", "phases", *container_specs.KEYS).fields(Job)
    found["container"] = read_container(table, model.container)
    if "phases" in table.data:
        found["phases"] = _phases(table)
    if curve.data:
        found["curve"] = read_curve(curve, load)
    job = dataclasses.replace(model, **found)
    _check(job, table)
    return job


def _phases(table: Table) -> tuple[Phase, ...]:
    phases = table.data["phases"]
    if not isinstance(phases, list) or not all(isinstance(one, dict) for one in phases):
        raise table.error("phases must be tables, such as [{ every = 5, cpu = 10, threads = 2 }]")
    found = []
    for number, one in enumerate(phases, 1):
        phase = Phase(**Table(f"{table.where}: phase {number}", one).fields(Phase))
        if phase.every <= 0 or phase.threads <= 0:
            raise table.error("every and threads of a phase must be more than 0")
        if not (0 <= phase.cpu <= _MOST_OF["work"] and 0 <= phase.sleep <= _MOST_OF["wait"]):
            raise table.error("cpu and sleep of a phase must be between 0 and 1e9 seconds")
        found.append(phase)
    return tuple(found)


def _check(job: Job, table: Table) -> None:
    if job.role and job.role not in list(Role):
        raise table.error(f"role must be one of {', '.join(Role)}, not {job.role!r}")
    if job.gpu_list and not parse_cpus(job.gpu_list):
        raise table.error(f"gpu_list must be numbers of GPUs, such as 0-1,3, not {job.gpu_list!r}")
    if job.serves == (job.acts_as is Role.TRAINING):
        wrong = (
            "does not serve: leave out request"
            if job.serves
            else ("needs request, the CPU seconds that it works at a time")
        )
        raise table.error(f"a job of role {job.role} {wrong}")
    numbers = {field.name: getattr(job, field.name) for field in dataclasses.fields(Job)}
    for key, value in numbers.items():
        if isinstance(value, int | float) and value < 0 and key not in _MAY_BE_NEGATIVE:
            raise table.error(f"{key} must not be below 0")
    for key in _POSITIVE:
        if numbers[key] <= 0:
            raise table.error(f"{key} must be more than 0")
    for key, most in _MOST_OF.items():
        if numbers[key] > most:
            raise table.error(f"{key} must be at most {most:.0f}")
    if job.spin > 1:
        raise table.error("spin must be between 0 and 1")
    if job.serves and job.duration <= 0:
        raise table.error("a serving job needs a duration in seconds")
