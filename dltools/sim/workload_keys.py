"""Reads and checks the tables of a workload file: jobs, kinds of jobs, curves, containers.

A curve is a formula or a table of points. A container says how to start a job for real.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from dltools.errors import DataError
from dltools.labels import LEAST_PRIORITY, MOST_PRIORITY, Role
from dltools.notation.resources import parse_cpus
from dltools.sim.generate import TRAININGS
from dltools.sim.workload import CURVE_KINDS, ContainerSpec, Job, LearningCurve, Phase

MOST = 1_000_000
_LARGEST_NUMBER = 1e300
_NOT_FOR_FILES = ("curve", "table", "seed", "container", "phases")
"""Fields of the classes that a workload file cannot set directly."""


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A table of a workload file; `where` names the file and the table in errors."""

    where: str
    data: Mapping[str, Any]

    def error(self, text: str) -> DataError:
        """Return an error that names the table."""
        return DataError(f"{self.where}: {text}")

    def without(self, *keys: str) -> Table:
        """Return the table without some keys."""
        rest = {key: value for key, value in self.data.items() if key not in keys}
        return Table(self.where, rest)

    def fields(self, cls: type[Any]) -> dict[str, Any]:
        """Return its values as fields of a class. Raises `DataError` for unknown keys and for
        values of a wrong type."""
        types = {
            field.name: str(field.type)
            for field in dataclasses.fields(cls)
            if field.name not in _NOT_FOR_FILES
        }
        values = {}
        for key, value in self.data.items():
            if key not in types:
                raise self.error(f"unknown key {key!r}; known: {', '.join(types)}")
            values[key] = _value(value, types[key], f"{self.where}: {key}")
        return values


def tables(data: Mapping[str, Any], key: str, name: str) -> list[Table]:
    """Return the tables [[key]] of a file, each with its name or number in `where`."""
    entries = data.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(table, dict) for table in entries):
        raise DataError(f"{name}: write [[{key}]] once for each {key}")
    return [
        Table(f"{name}: {key} {table.get('name', number)}", table)
        for number, table in enumerate(entries, 1)
    ]


def _value(value: Any, type_: str, where: str) -> Any:
    if type_ == "str":
        if not isinstance(value, str) or not value:
            raise DataError(f"{where} must be text, not {value!r}")
        return value
    if type_ == "bool":
        if not isinstance(value, bool):
            raise DataError(f"{where} must be true or false, not {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where} must be a number, not {value!r}")
    if not abs(value) < _LARGEST_NUMBER:
        raise DataError(f"{where} must be between -1e300 and 1e300, not {str(value)[:20]}")
    if type_ != "int":
        return float(value)
    if value != int(value):
        raise DataError(f"{where} must be a whole number, not {value!r}")
    return int(value)


Kinds = Mapping[str, Job]
"""Kinds of jobs by name."""

_POSITIVE = ("work", "threads", "epochs", "members", "cpu_weight")
_MAY_BE_NEGATIVE = ("first", "final")
_SECONDS = ("arrival", "work", "startup", "shutdown", "request", "think", "duration", "checkpoint")
_MOST_OF = {
    **dict.fromkeys((*_SECONDS, "wait", "device"), 1e9),
    **dict.fromkeys(("threads", "idle_threads", "members"), 1e6),
    "epochs": MOST,
    "memory": 2**63,
    **dict.fromkeys(("gpus", "cpus"), 1e6),
    "cpu_weight": 262144,
}
"""Upper bounds for the simulator: 1e9 seconds are 30 years, and each epoch is a report."""


def read_kinds(tables: Iterable[Table]) -> Kinds:
    """Return the built-in kinds and those of a file. Raises `DataError`."""
    kinds = {kind.name: kind for kind in TRAININGS}
    for number, table in enumerate(tables, 1):
        if "kind" in table.data:
            raise table.error("unknown key 'kind'")
        kind = _job(table, Job(f"kind-{number}"))
        kinds[kind.name] = kind
    return kinds


def read_jobs(tables: Iterable[Table], kinds: Kinds) -> list[Job]:
    """Return the jobs of a file. Raises `DataError`."""
    return [_job(table, _model(table, kinds, number)) for number, table in enumerate(tables, 1)]


def kind_of(named: Any, kinds: Kinds, table: Table) -> Job:
    """Return a kind by its name. Raises `DataError` with the known names."""
    if not isinstance(named, str) or named not in kinds:
        raise table.error(f"no kind is called {named!r}; known: {', '.join(kinds)}")
    return kinds[named]


def _model(table: Table, kinds: Kinds, number: int) -> Job:
    """Return the job from which a table takes what it does not set."""
    if "kind" not in table.data:
        return Job(f"job-{number}")
    kind = kind_of(table.data["kind"], kinds, table)
    return dataclasses.replace(kind, name=f"{kind.name}-{number}")


def _job(table: Table, model: Job) -> Job:
    fields = table.without("curve", "kind", "phases", *_CONTAINER_KEYS).fields(Job)
    fields["container"] = _read_container(table, model.container)
    if "phases" in table.data:
        fields["phases"] = _phases(table)
    if table.data.get("curve", {}) != {}:
        fields["curve"] = _read_curve(table)
    job = dataclasses.replace(model, **fields)
    _check(job, table)
    return job


def _phases(table: Table) -> tuple[Phase, ...]:
    entries = table.data["phases"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise table.error("phases must be tables, such as [{ every = 5, cpu = 10, threads = 2 }]")
    phases = []
    for number, entry in enumerate(entries, 1):
        phase = Phase(**Table(f"{table.where}: phase {number}", entry).fields(Phase))
        if phase.every <= 0 or phase.threads <= 0:
            raise table.error("every and threads of a phase must be more than 0")
        if not (0 <= phase.cpu <= _MOST_OF["work"] and 0 <= phase.sleep <= _MOST_OF["wait"]):
            raise table.error("cpu and sleep of a phase must be between 0 and 1e9 seconds")
        phases.append(phase)
    return tuple(phases)


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
    if not LEAST_PRIORITY <= job.priority <= MOST_PRIORITY:
        raise table.error(f"priority must be from {LEAST_PRIORITY:g} to {MOST_PRIORITY:g}")
    if job.spin > 1:
        raise table.error("spin must be between 0 and 1")
    if job.serves and job.duration <= 0:
        raise table.error("a serving job needs a duration in seconds")


def _read_curve(table: Table) -> LearningCurve:
    """Return the curve of a job's table `curve`. Raises `DataError`."""
    data = table.data["curve"]
    if not isinstance(data, dict):
        raise table.error('curve must be a table, such as { kind = "power", end = 0.2 }')
    pairs = _points(data.get("table", ()), table)
    curve_table = Table(f"{table.where}: curve", data).without("table")
    curve = LearningCurve(**curve_table.fields(LearningCurve), table=tuple(sorted(pairs)))
    if curve.kind not in CURVE_KINDS:
        raise table.error(
            f"a curve's kind must be one of {', '.join(CURVE_KINDS)}, not {curve.kind!r}"
        )
    if curve.rate < 0 or curve.noise < 0:
        raise curve_table.error("rate and noise must not be below 0")
    if curve.kind == "points" and not pairs:
        raise table.error("a curve of points needs a table")
    return curve


def _points(points: Any, table: Table) -> list[tuple[float, float]]:
    """Return the pairs (share of the work, value) of a curve. Raises `DataError`."""
    try:
        return [(float(share), float(value)) for share, value in points]
    except (TypeError, ValueError, OverflowError) as error:
        raise table.error("a curve's table must be pairs of [share of the work, value]") from error


_CONTAINER_KEYS = ("image", "command", "labels", "docker")


def _read_container(table: Table, model: ContainerSpec) -> ContainerSpec:
    """Return the container of a job's table, unchecked: who starts it sees what is wrong. `model`,
    that of its kind, fills in missing keys."""
    given = {key: table.data[key] for key in _CONTAINER_KEYS if key in table.data}
    lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
    return dataclasses.replace(model, **given | lists)
