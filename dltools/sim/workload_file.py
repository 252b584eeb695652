"""Workload files: jobs and nodes as TOML, see dltools-workload(5). What a file leaves to chance, a
seed decides."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dltools.errors import DataError
from dltools.sim.curve import KINDS, LearningCurve
from dltools.sim.generate import ARRIVALS, TRAININGS, arrivals
from dltools.sim.workload import HostSpec, Job, Workload, checked

_MOST = 1_000_000
_MOST_NUMBER = 1e300


@dataclass(frozen=True, slots=True)
class _Stream:
    """Many jobs by a rule: `count` of the `kinds`, drawn at random or in turn."""

    count: int = 1
    arrivals: str = "poisson"
    gap: float = 30.0
    begin: float = 0.0
    pick: str = "random"


@dataclass(frozen=True, slots=True)
class _Vary:
    """What differs between seeds: the parts by which works and requests are at most more or less,
    and the seconds by which a job may come later."""

    work: float = 0.0
    request: float = 0.0
    arrival: float = 0.0


Loader = Callable[[str], str]
"""Returns the text of a file that a workload names; may raise `DataError`."""


def _no_files(file: str) -> str:
    raise DataError(f"{file}: a curve's file cannot be read here")


def read(text: str, name: str, seed: int = 0, load: Loader = _no_files) -> Workload:
    """Read a workload file. `load` reads the curve files that it names. Raises `DataError` with the
    file, the job and the fault."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: {error}") from error
    if unknown := sorted(set(data) - {"node", "kind", "job", "stream", "vary"}):
        raise DataError(
            f"{name}: unknown table [{unknown[0]}]; "
            "known: [[node]], [[kind]], [[job]], [[stream]], [vary]"
        )
    vary = _vary(data.get("vary", {}), name)
    nodes = [_node(table, number, name) for number, table in _tables(data, "node", name)]
    kinds = {kind.name: kind for kind in TRAININGS}
    for number, table in _tables(data, "kind", name):
        kind = _job(table, number, name, {}, load, "kind")
        kinds[kind.name] = kind
    jobs = [_job(table, number, name, kinds, load) for number, table in _tables(data, "job", name)]
    chance = random.Random(f"workload {seed}")
    for number, table in _tables(data, "stream", name):
        jobs += _streamed(table, f"{name}: stream {number}", kinds, chance, len(jobs))
    jobs = [_varied(job, vary, chance, seed) for job in jobs]
    return checked(jobs, nodes or [HostSpec("node", 2.0)], name)


def _tables(data: Mapping[str, Any], key: str, name: str) -> list[tuple[int, Mapping[str, Any]]]:
    tables = data.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise DataError(f"{name}: write [[{key}]], once for each {key}")
    return list(enumerate(tables, 1))


def _vary(table: Any, name: str) -> _Vary:
    if not isinstance(table, dict):
        raise DataError(f"{name}: write [vary], once")
    vary = _Vary(**_values(table, _Vary, f"{name}: vary", {}))
    if not (0 <= vary.work < 1 and 0 <= vary.request < 1 and vary.arrival >= 0):
        raise DataError(f"{name}: vary: parts are from 0 to 1, seconds not below 0")
    return vary


def _varied(job: Job, vary: _Vary, chance: random.Random, seed: int) -> Job:
    return replace(
        job,
        seed=seed,
        work=job.work * (1 + vary.work * chance.uniform(-1, 1)),
        request=job.request * (1 + vary.request * chance.uniform(-1, 1)),
        arrival=job.arrival + vary.arrival * chance.random(),
    )


def _streamed(
    table: Mapping[str, Any],
    where: str,
    kinds: Mapping[str, Job],
    chance: random.Random,
    before: int,
) -> list[Job]:
    rest = {key: value for key, value in table.items() if key != "kinds"}
    stream = _Stream(**_values(rest, _Stream, where, {}))
    named = table.get("kinds", [kind.name for kind in TRAININGS])
    if not isinstance(named, list) or not named:
        raise DataError(f"{where}: kinds is a list of names of kinds")
    models = [_kind(kind, kinds, where) for kind in named]
    if stream.arrivals not in ARRIVALS:
        raise DataError(f"{where}: arrivals is one of {', '.join(ARRIVALS)}")
    if stream.pick not in ("random", "turn"):
        raise DataError(f"{where}: pick is random or turn")
    if not 0 < stream.count <= _MOST:
        raise DataError(f"{where}: count is from 1 to {_MOST:,}")
    if not 0 <= stream.gap <= 1e9 or not 0 <= stream.begin <= 1e9:
        raise DataError(f"{where}: gap and begin are from 0 to 1,000,000,000 seconds")
    jobs = []
    width = len(str(before + stream.count))
    for number, time in enumerate(arrivals(stream.arrivals, stream.count, stream.gap, chance)):
        turn = stream.pick == "turn"
        model = models[number % len(models)] if turn else chance.choice(models)
        name = f"{model.name}-{before + number + 1:0{width}d}"
        jobs.append(replace(model, name=name, arrival=stream.begin + time))
    return jobs


def _kind(named: Any, kinds: Mapping[str, Job], where: str) -> Job:
    if not isinstance(named, str) or named not in kinds:
        raise DataError(f"{where}: no kind is called {named!r}; known: {', '.join(kinds)}")
    return kinds[named]


def _node(table: Mapping[str, Any], number: int, name: str) -> HostSpec:
    where = f"{name}: node {table.get('name', number)}"
    found = _values(table, HostSpec, where, {"name": f"node-{number}"})
    if "cpus" not in found:
        raise DataError(f"{where}: cpus is missing: how many has it?")
    spec = HostSpec(**found)
    if not 0 < spec.cpus < 1e6:
        raise DataError(f"{where}: cpus is more than 0 and less than 1,000,000")
    return spec


_POSITIVE = ("work", "threads", "epochs")
_MOST_OF = {
    "arrival": 1e9, "work": 1e9, "startup": 1e9, "request": 1e9, "think": 1e9, "duration": 1e9,
    "checkpoint": 1e9, "threads": 1e6, "epochs": _MOST, "memory": 2**63, "gpus": 1e6,
}  # fmt: skip
"""Bounds of what can be simulated: 1e9 seconds are 30 years, and each epoch is a report."""


def _job(
    table: Mapping[str, Any],
    number: int,
    name: str,
    kinds: Mapping[str, Job],
    load: Loader,
    word: str = "job",
) -> Job:
    where = f"{name}: {word} {table.get('name', number)}"
    curve = table.get("curve", {})
    if not isinstance(curve, dict):
        raise DataError(f'{where}: curve is a table, such as {{ kind = "power", end = 0.2 }}')
    rest = {key: value for key, value in table.items() if key not in ("curve", "kind")}
    title = {"name": f"{word}-{number}"}
    if "kind" in table and word == "job":
        model = _kind(table["kind"], kinds, where)
        title = {"name": f"{model.name}-{number}"}
    elif "kind" in table:
        raise DataError(f"{where}: unknown key 'kind'")
    else:
        model = Job("")
    found = _values(rest, Job, where, title)
    if curve:
        found["curve"] = _curve(curve, where, load)
    job = replace(model, **found)
    for key in (field_.name for field_ in dataclasses.fields(Job)):
        value = getattr(job, key)
        if isinstance(value, int | float) and (value < 0 and key not in ("first", "final")):
            raise DataError(f"{where}: {key} is not below 0")
    for key in _POSITIVE:
        if getattr(job, key) <= 0:
            raise DataError(f"{where}: {key} is more than 0")
    for key, most in _MOST_OF.items():
        if getattr(job, key) > most:
            raise DataError(f"{where}: {key} is at most {most:,.0f}")
    if job.spin > 1:
        raise DataError(f"{where}: spin is from 0 to 1")
    if job.serves and job.duration <= 0:
        raise DataError(f"{where}: a serving job has a duration in seconds")
    return job


def _curve(table: Mapping[str, Any], where: str, load: Loader) -> LearningCurve:
    values = dict(table)
    points = values.pop("table", ())
    named = {key: values.pop(key, None) for key in ("file", "x", "y")}
    if named["file"] is not None:
        if points:
            raise DataError(f"{where}: a curve has a table or a file")
        pairs = _from_file(named, where, load)
        values.setdefault("kind", "points")
    elif named["x"] is not None or named["y"] is not None:
        raise DataError(f"{where}: x and y are columns of a curve's file")
    else:
        pairs = _pairs(points, where)
    found = _values(values, LearningCurve, f"{where}: curve", {})
    curve = LearningCurve(**{**found, "table": tuple(sorted(pairs))})
    if curve.kind not in KINDS:
        raise DataError(f"{where}: a curve's kind is one of {', '.join(KINDS)}, not {curve.kind!r}")
    if curve.kind == "points" and not pairs:
        raise DataError(f"{where}: a curve of points needs a table or a file")
    return curve


def _pairs(points: Any, where: str) -> list[tuple[float, float]]:
    try:
        return [(float(u), float(v)) for u, v in points]
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{where}: a curve's table is pairs of (part of the work, value)"
        ) from error


def _from_file(named: Mapping[str, Any], where: str, load: Loader) -> list[tuple[float, float]]:
    """Return (part of the work, value) of a CSV file: column x, by default the first, over its
    largest value, and column y, by default metric, value or the second."""
    file = named["file"]
    if not isinstance(file, str):
        raise DataError(f"{where}: a curve's file is a name, not {file!r}")
    rows = csv.DictReader(io.StringIO(load(file)))
    try:
        fields = list(rows.fieldnames or ())
    except csv.Error as error:
        raise DataError(f"{where}: {file}: {error}") from error
    usual = [field for field in ("metric", "value") if field in fields] or fields[1:]
    x, y = named["x"] or fields[:1], named["y"] or usual[:1]
    x, y = (one if isinstance(one, str) else next(iter(one), "") for one in (x, y))
    for column in (x, y):
        if column not in fields:
            raise DataError(f"{where}: {file}: no column {column!r}; it has {', '.join(fields)}")
    try:
        found = [(float(row[x]), float(row[y])) for row in rows]
    except (TypeError, ValueError, csv.Error) as error:
        raise DataError(f"{where}: {file}: {error}") from error
    found = [(u, v) for u, v in found if math.isfinite(u) and math.isfinite(v)]
    most = max((u for u, _ in found), default=0.0)
    if most <= 0:
        raise DataError(f"{where}: {file}: column {x} has no number above 0")
    return [(u / most, v) for u, v in found if u >= 0]


_NOT_FOR_FILES: Sequence[str] = ("curve", "table", "seed")


def _values(
    table: Mapping[str, Any], cls: type[Any], where: str, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a table's values as the fields of a class want them."""
    known = {f.name: f for f in dataclasses.fields(cls) if f.name not in _NOT_FOR_FILES}
    found = dict(defaults)
    for key, value in table.items():
        if key not in known:
            raise DataError(f"{where}: unknown key {key!r}; known: {', '.join(known)}")
        found[key] = _value(value, str(known[key].type), f"{where}: {key}")
    return found


def _value(value: Any, kind: str, where: str) -> Any:
    if kind == "str":
        if not isinstance(value, str) or not value:
            raise DataError(f"{where} is a text, not {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where} is a number, not {value!r}")
    if not abs(value) < _MOST_NUMBER:
        raise DataError(f"{where} is a finite number of reason, not {str(value)[:20]}")
    if kind != "int":
        return float(value)
    if value != int(value):
        raise DataError(f"{where} is a whole number, not {value!r}")
    return int(value)
