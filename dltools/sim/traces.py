"""Reads published traces of clusters as jobs, for `dl-sim --trace`.

A GPU of a trace becomes a CPU here: the simulator shares it in the same way. No trace has learning
curves, so the jobs have the default curve.

Gavel (Narayanan et al., OSDI 2020): a line per job, separated by tabs: kind, command, directory,
flag, data, steps, scale factor, priority, deadline, arrival. The length of a job is its steps
divided by the throughput of its kind at its scale, from the table that the authors published.

Pollux (Qiao et al., OSDI 2021): name, time, application, replicas and batch size. The file does not
say how long an application runs; that is taken from the profiles that the authors published.

Philly (Jeon et al., ATC 2019): Microsoft's job log of that cluster, or a table of run times.

Alibaba's GPU trace of 2023 (Weng et al., ATC 2023), and the node lists of 2023 and 2026: a row per
pod, with the CPUs that it asked for and the times when it was scheduled and deleted.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from dltools.errors import DataError, reading
from dltools.sim.workload import HostSpec, Job

KINDS = ("gavel", "pollux", "philly", "alibaba")
"""The traces that can be read."""


class _Row(NamedTuple):
    """A row, and its place (file and line) for messages."""

    where: str
    values: dict[str, str]


def _columns_of(text: str, name: str) -> Sequence[str]:
    """Return the names of a CSV file's columns. Raises `DataError` for text that is no CSV."""
    with reading(name):
        return list(csv.DictReader(io.StringIO(text)).fieldnames or ())


def _rows_of(text: str, name: str) -> Iterator[_Row]:
    """Yield the rows of a CSV file. Raises `DataError` for text that is no CSV."""
    with reading(name):
        for line, values in enumerate(csv.DictReader(io.StringIO(text)), 2):
            yield _Row(f"{name}: line {line}", values)


def _check_columns(text: str, wanted: Sequence[str], name: str, title: str) -> None:
    """Raise `DataError` for a file that lacks a column."""
    known = _columns_of(text, name)
    missing = [column for column in wanted if column not in known]
    if missing:
        raise DataError(f"{name}: not {title}: no column {missing[0]}")


_GAVEL_FIELDS = 10


def gavel_jobs(
    text: str, throughputs: Mapping[str, Any], name: str, gpu: str = "v100"
) -> list[Job]:
    """Return the jobs of a Gavel trace; `throughputs` are steps per second by GPU and (kind,
    scale). Raises `DataError` with the line and the error."""
    known = throughputs.get(gpu)
    if not isinstance(known, Mapping):
        raise DataError(f"{name}: the throughputs have no GPU called {gpu}")
    return [
        _gavel_job(line, number, known, f"{name}: line {number}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]


def _gavel_job(line: str, number: int, known: Mapping[str, Any], where: str) -> Job:
    fields = line.split("\t")
    if len(fields) != _GAVEL_FIELDS:
        raise DataError(f"{where}: a Gavel trace has {_GAVEL_FIELDS} fields, not {len(fields)}")
    with reading(where):
        steps, scale, arrival = float(fields[5]), int(fields[6]), float(fields[9])
    try:
        rate = float(known[f"('{fields[0]}', {scale})"]["null"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{where}: no throughput of {fields[0]} on {scale} GPUs") from error
    if not (0 < steps < math.inf and rate > 0 and scale > 0 and 0 <= arrival < math.inf):
        raise DataError(f"{where}: steps, scale and throughput must be more than 0")
    kind = fields[2].split("/")[0] or fields[0].split()[0]
    return Job(f"{kind}-{number}", arrival, steps / rate * scale, scale, spin=0.0)


GPU_SECONDS = {
    "cifar10": 4_060.0,
    "bert": 13_600.0,
    "deepspeech2": 19_400.0,
    "yolov3": 33_700.0,
    "imagenet": 532_000.0,
    "ncf": 1_800.0,
}
"""GPU seconds of each application: the iterations of the smallest batch, multiplied by the time of
a step on one GPU without synchronisation (petuum/adaptdl, simulator/traces and applications.py:
39,070 of 0.104 s; 14,774 of 0.92 s; 28,539 of 0.68 s; 103,444 of 0.326 s; 576,526 of 0.92 s). The
step time of ncf is not published: its value is the middle of its class, which is up to an hour."""

_POLLUX_COLUMNS = ("name", "time", "application", "num_replicas")


def pollux_jobs(text: str, name: str) -> list[Job]:
    """Return the jobs of a Pollux workload. Raises `DataError` with the line and the error."""
    _check_columns(text, _POLLUX_COLUMNS, name, "a Pollux workload")
    return [_pollux_job(row) for row in _rows_of(text, name)]


def _pollux_job(row: _Row) -> Job:
    where, values = row
    work = GPU_SECONDS.get(values["application"] or "")
    if work is None:
        known = ", ".join(GPU_SECONDS)
        raise DataError(f"{where}: unknown application {values['application']!r}; known: {known}")
    with reading(where):
        arrival, replicas = float(values["time"]), int(values["num_replicas"])
    if not 0 <= arrival < math.inf or replicas <= 0:
        raise DataError(f"{where}: time must not be below 0, num_replicas must be more than 0")
    return Job(values["name"], arrival, work, replicas, spin=0.0)


@dataclass(frozen=True, slots=True)
class _PhillyAttempt:
    """One attempt to run a job, with its number of GPUs and its length."""

    gpus: int
    seconds: float


def philly_jobs(text: str, name: str, gap: float, seed: int = 0) -> list[Job]:
    """Return the jobs of Philly's log (JSON), or of a table of run times.

    Jobs from a table have one GPU each and arrive `gap` seconds apart, in an order that the seed
    decides. Raises `DataError`.
    """
    if text.lstrip()[:1] in ("[", "{"):
        return _logged_jobs(text, name)
    times = _run_times(text, name)
    random.Random(seed).shuffle(times)
    width = len(str(len(times)))
    return [Job(f"job-{k:0{width}d}", k * gap, time, 1, spin=0.0) for k, time in enumerate(times)]


def _run_times(text: str, name: str) -> list[float]:
    if "runtime" not in _columns_of(text, name):
        raise DataError(f"{name}: neither Philly's job log nor a table of run times")
    times = []
    for where, values in _rows_of(text, name):
        with reading(where):
            times.append(float(values["runtime"]))
    return [time for time in times if 0 < time < math.inf]


def _logged_jobs(text: str, name: str) -> list[Job]:
    with reading(name):
        log = json.loads(text)
    found: list[tuple[datetime, Job]] = []
    for number, entry in enumerate(log if isinstance(log, list) else [log], 1):
        try:
            attempts = list(_philly_attempts(entry))
            submitted = datetime.fromisoformat(entry["submitted_time"])
            title = str(entry["jobid"])
            if submitted.tzinfo is not None:
                raise ValueError("a submitted_time with a time zone")
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{name}: job {number}: {type(error).__name__}: {error}") from error
        work = sum((attempt.gpus * attempt.seconds for attempt in attempts), 0.0)
        widest = max((attempt.gpus for attempt in attempts), default=0)
        if work > 0:
            found.append((submitted, Job(title, 0.0, work, widest, spin=0.0)))
    return _since_the_first(found)


def _philly_attempts(entry: Mapping[str, Any]) -> Iterator[_PhillyAttempt]:
    for attempt in entry["attempts"]:
        gpus = sum(len(part["gpus"]) for part in attempt["detail"])
        if attempt["start_time"] in (None, "None") or attempt["end_time"] in (None, "None"):
            continue  # it never began, or still ran
        begin, end = (datetime.fromisoformat(attempt[key]) for key in ("start_time", "end_time"))
        yield _PhillyAttempt(gpus, (end - begin).total_seconds())


def _since_the_first(found: list[tuple[datetime, Job]]) -> list[Job]:
    """Return the jobs with arrivals in seconds since the first job was submitted."""
    begun = min((submitted for submitted, _ in found), default=None)
    return [
        replace(job, arrival=(submitted - begun).total_seconds() if begun else 0.0)
        for submitted, job in found
    ]


_POD_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)


def alibaba_jobs(text: str, name: str) -> list[Job]:
    """Return the pods that ran to their end, as jobs. Raises `DataError` with the line."""
    _check_columns(text, _POD_COLUMNS, name, "an Alibaba pod list")
    found = (
        _pod_job(row)
        for row in _rows_of(text, name)
        if row.values["scheduled_time"] and row.values["deletion_time"]
    )
    return [job for job in found if job is not None]


def _pod_job(row: _Row) -> Job | None:
    """Return a pod's job, None if it used no time or no CPU."""
    where, values = row
    with reading(where):
        begin, end = float(values["scheduled_time"]), float(values["deletion_time"])
        cores, arrival = float(values["cpu_milli"]) / 1000, float(values["creation_time"])
        memory = int(values["memory_mib"]) << 20
    if not all(map(math.isfinite, (begin, end, cores, arrival))):
        raise DataError(f"{where}: a number is missing, or too large")
    if end <= begin or cores <= 0:
        return None
    threads = max(1, math.ceil(cores))
    return Job(values["name"], arrival, cores * (end - begin), threads, memory=memory, spin=0.0)


def alibaba_hosts(text: str, name: str) -> list[HostSpec]:
    """Return the hosts of a node list, of 2023 or of 2026. Raises `DataError` with the line."""
    known = _columns_of(text, name)
    if "cpu_milli" in known and "sn" in known:
        return [_listed_host(row, "sn", "cpu_milli", 1000.0) for row in _rows_of(text, name)]
    if "cpu_num" in known and "node_name" in known:
        return [_listed_host(row, "node_name", "cpu_num", 1.0) for row in _rows_of(text, name)]
    raise DataError(f"{name}: not an Alibaba node list: no columns sn and cpu_milli")


def _listed_host(row: _Row, title: str, cores: str, unit: float) -> HostSpec:
    where, values = row
    with reading(where):
        cpus, memory = float(values[cores]) / unit, int(values.get("memory_mib") or 0) << 20
    if not 0 < cpus < 1e6 or memory < 0:
        raise DataError(f"{where}: {cores} must be more than 0")
    return HostSpec(values[title], cpus, memory)
