"""Jobs and nodes of a simulation: what a workload file says, see dltools-workload(5)."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dltools.errors import DataError
from dltools.sim.curve import KINDS, LearningCurve


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `arrival` in seconds; `work` in useful CPU seconds; `epochs` is how often it reports
    its metric; `startup` the seconds before its first work. `first` and `final` are targets of the
    curve's metric. With `request` (CPU seconds) it serves for `duration` seconds instead: one
    request after the other, `think` seconds apart, to be answered in `qoe` seconds. `memory` in
    bytes. `checkpoint` is how many seconds it takes to stop and start elsewhere; `spin` how much of
    the measured contention its threads suffer, from 0 (they sleep at barriers) to 1 (they spin)."""

    name: str
    arrival: float = 0.0
    work: float = 60.0
    threads: int = 1
    epochs: int = 100
    startup: float = 0.0
    memory: int = 0
    curve: LearningCurve = field(default_factory=LearningCurve)
    first: float | None = None
    final: float | None = None
    request: float = 0.0
    think: float = 0.0
    duration: float = 0.0
    qoe: float | None = None
    checkpoint: float = 18.0
    spin: float = 1.0

    @property
    def serves(self) -> bool:
        """Whether it answers requests instead of training."""
        return self.request > 0


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One machine: `memory` in bytes, 0 for as much as anybody wants."""

    name: str
    cpus: float
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of arrival, and the machines they run on."""

    jobs: tuple[Job, ...]
    nodes: tuple[NodeSpec, ...]


def read(text: str, name: str) -> Workload:
    """Read a workload file. Raises `DataError` with the file, the job and the fault."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{name}: {error}") from error
    if unknown := sorted(set(data) - {"node", "job"}):
        raise DataError(f"{name}: unknown table [{unknown[0]}]; known: [[node]], [[job]]")
    nodes = [_node(table, number, name) for number, table in _tables(data, "node", name)]
    jobs = [_job(table, number, name) for number, table in _tables(data, "job", name)]
    return checked(jobs, nodes or [NodeSpec("node", 2.0)], name)


def checked(jobs: Sequence[Job], nodes: Sequence[NodeSpec], name: str) -> Workload:
    """Return a workload in order of arrival. Raises `DataError` for names that come twice, and for
    a job that fits no machine."""
    for kind, names in (("job", [j.name for j in jobs]), ("node", [n.name for n in nodes])):
        seen: set[str] = set()
        for one in names:
            if one in seen:
                raise DataError(f"{name}: two {kind}s are called {one!r}")
            seen.add(one)
    room = max((node.memory or math.inf for node in nodes), default=0)
    for job in jobs:
        if job.memory > room:
            raise DataError(f"{name}: job {job.name}: its memory fits no node")
    return Workload(tuple(sorted(jobs, key=lambda job: (job.arrival, job.name))), tuple(nodes))


def _tables(data: Mapping[str, Any], key: str, name: str) -> list[tuple[int, Mapping[str, Any]]]:
    tables = data.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise DataError(f"{name}: write [[{key}]], once for each {key}")
    return list(enumerate(tables, 1))


def _node(table: Mapping[str, Any], number: int, name: str) -> NodeSpec:
    where = f"{name}: node {table.get('name', number)}"
    found = _values(table, NodeSpec, where, {"name": f"node-{number}"})
    spec = NodeSpec(**found)
    if not 0 < spec.cpus < 1e6:
        raise DataError(f"{where}: cpus is more than 0")
    return spec


_POSITIVE = ("work", "threads", "epochs")


def _job(table: Mapping[str, Any], number: int, name: str) -> Job:
    where = f"{name}: job {table.get('name', number)}"
    curve = table.get("curve", {})
    if not isinstance(curve, dict):
        raise DataError(f'{where}: curve is a table, such as {{ kind = "power", end = 0.2 }}')
    rest = {key: value for key, value in table.items() if key != "curve"}
    found = _values(rest, Job, where, {"name": f"job-{number}"})
    found["curve"] = _curve(curve, where)
    job = Job(**found)
    for key in (field_.name for field_ in dataclasses.fields(Job)):
        value = getattr(job, key)
        if isinstance(value, int | float) and (value < 0 and key not in ("first", "final")):
            raise DataError(f"{where}: {key} is not below 0")
    for key in _POSITIVE:
        if getattr(job, key) <= 0:
            raise DataError(f"{where}: {key} is more than 0")
    if job.spin > 1:
        raise DataError(f"{where}: spin is from 0 to 1")
    if job.serves and job.duration <= 0:
        raise DataError(f"{where}: a serving job has a duration in seconds")
    return job


def _curve(table: Mapping[str, Any], where: str) -> LearningCurve:
    values = dict(table)
    points = values.pop("table", ())
    try:
        pairs = tuple((float(u), float(v)) for u, v in points)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where}: a curve's table is pairs of (part of the work, value)"
        ) from error
    found = _values(values, LearningCurve, f"{where}: curve", {})
    curve = LearningCurve(**{**found, "table": tuple(sorted(pairs))})
    if curve.kind not in KINDS:
        raise DataError(f"{where}: a curve's kind is one of {', '.join(KINDS)}, not {curve.kind!r}")
    if curve.kind == "points" and not pairs:
        raise DataError(f"{where}: a curve of points needs a table")
    return curve


def _values(
    table: Mapping[str, Any], cls: type[Any], where: str, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a table's values as the fields of a class want them."""
    known = {f.name: f for f in dataclasses.fields(cls)}
    found = dict(defaults)
    for key, value in table.items():
        if key not in known or key in ("curve", "table"):
            names = ", ".join(name for name in known if name not in ("curve", "table"))
            raise DataError(f"{where}: unknown key {key!r}; known: {names}")
        kind = str(known[key].type)
        if kind == "str":
            if not isinstance(value, str) or not value:
                raise DataError(f"{where}: {key} is a text, not {value!r}")
            found[key] = value
            continue
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise DataError(f"{where}: {key} is a number, not {value!r}")
        if kind == "int":
            if value != int(value):
                raise DataError(f"{where}: {key} is a whole number, not {value!r}")
            found[key] = int(value)
        else:
            found[key] = float(value)
    return found
