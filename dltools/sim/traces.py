"""Others' cluster traces as jobs. A GPU of theirs is a CPU of ours: what is shared out is the same.

`gavel`: a line per job, tab-separated: kind, command, directory, flag, data, steps, scale factor,
priority, deadline, arrival (Narayanan et al., OSDI 2020); how long it takes is its steps over the
throughput of its kind at its scale, from their table. `pollux`: name, time, application, replicas
and batch size (Qiao et al., OSDI 2021); how long an application takes is not in the file, and is
taken from the profiles that the authors published. `philly`: Microsoft's job log (Jeon et al., ATC
2019), or run times alone. `alibaba`: the pods of the 2023 GPU trace, a row each: what CPU a pod
asked for, from when it was scheduled until it was deleted (Weng et al., ATC 2023). None tells a
learning curve: the jobs have the usual one.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dltools.errors import DataError
from dltools.sim.workload import HostSpec, Job

KINDS = ("gavel", "pollux", "philly", "alibaba")
POLLUX_S = {
    "cifar10": 4_060.0,
    "bert": 13_600.0,
    "deepspeech2": 19_400.0,
    "yolov3": 33_700.0,
    "imagenet": 532_000.0,
    "ncf": 1_800.0,
}
"""GPU seconds of Pollux' applications: iterations of the smallest batch, times a step's time on one
GPU without synchronisation (petuum/adaptdl, simulator/traces and applications.py: 39,070 of 0.104
s; 14,774 of 0.92 s; 28,539 of 0.68 s; 103,444 of 0.326 s; 576,526 of 0.92 s). Of ncf the step time
is not published: the middle of its class, up to an hour."""
_FIELDS = 10
_POD = ("name", "cpu_milli", "memory_mib", "creation_time", "deletion_time", "scheduled_time")


def gavel(text: str, throughputs: Mapping[str, Any], name: str, gpu: str = "v100") -> list[Job]:
    """Return the jobs of a Gavel trace; `throughputs` are steps a second by GPU and (kind, scale).

    Raises `DataError` with the line and what is wrong.
    """
    known = throughputs.get(gpu)
    if not isinstance(known, Mapping):
        raise DataError(f"{name}: the throughputs have no GPU called {gpu}")
    jobs = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where, fields = f"{name}: line {number}", line.split("\t")
        if len(fields) != _FIELDS:
            raise DataError(f"{where}: {len(fields)} fields where a Gavel trace has {_FIELDS}")
        try:
            steps, scale, arrival = float(fields[5]), int(fields[6]), float(fields[9])
            rate = float(known[f"('{fields[0]}', {scale})"]["null"])
        except (ValueError, OverflowError) as error:
            raise DataError(f"{where}: {error}") from error
        except (KeyError, TypeError) as error:
            raise DataError(f"{where}: no throughput of {fields[0]} on {scale} {gpu}") from error
        if not (steps > 0 and rate > 0 and scale > 0 and 0 <= arrival < math.inf):
            raise DataError(f"{where}: steps, scale and throughput are more than 0")
        kind = fields[2].split("/")[0] or fields[0].split()[0]
        jobs.append(
            Job(f"{kind}-{number}", arrival, steps / rate * scale, scale, spin=0.0)
        )  # fmt: skip
    return jobs


def alibaba(text: str, name: str) -> list[Job]:
    """Return the pods of an Alibaba GPU trace that ran. Raises `DataError`."""
    rows = csv.DictReader(io.StringIO(text))
    missing = [column for column in _POD if column not in (rows.fieldnames or ())]
    if missing:
        raise DataError(f"{name}: not an Alibaba pod list: no column {missing[0]}")
    jobs = []
    for number, row in enumerate(rows, 2):
        if not row["scheduled_time"] or not row["deletion_time"]:
            continue  # it never ran, or still does
        try:
            begin, end = float(row["scheduled_time"]), float(row["deletion_time"])
            cores, arrival = float(row["cpu_milli"]) / 1000, float(row["creation_time"])
            memory = int(row["memory_mib"]) << 20
        except (ValueError, OverflowError, TypeError) as error:
            raise DataError(f"{name}: line {number}: {error}") from error
        if end <= begin or cores <= 0:
            continue
        threads = max(1, math.ceil(cores))
        jobs.append(Job(row["name"], arrival, cores * (end - begin), threads, memory=memory,
                        spin=0.0))  # fmt: skip
    return jobs


def pollux(text: str, name: str) -> list[Job]:
    """Return the jobs of a Pollux workload. Raises `DataError`."""
    rows = csv.DictReader(io.StringIO(text))
    wanted = ("name", "time", "application", "num_replicas")
    missing = [column for column in wanted if column not in (rows.fieldnames or ())]
    if missing:
        raise DataError(f"{name}: not a Pollux workload: no column {missing[0]}")
    jobs = []
    for number, row in enumerate(rows, 2):
        where = f"{name}: line {number}"
        work = POLLUX_S.get(row["application"] or "")
        if work is None:
            known = ", ".join(POLLUX_S)
            raise DataError(f"{where}: application {row['application']!r}; known: {known}")
        try:
            arrival, replicas = float(row["time"]), int(row["num_replicas"])
        except (ValueError, TypeError) as error:
            raise DataError(f"{where}: {error}") from error
        if not 0 <= arrival < math.inf or replicas <= 0:
            raise DataError(f"{where}: time is not below 0, num_replicas more than 0")
        jobs.append(Job(row["name"], arrival, work, replicas, spin=0.0))
    return jobs


def philly(text: str, name: str, gap: float, seed: int = 0) -> list[Job]:
    """Return the jobs of Microsoft's log: its JSON, or a table of run times alone, whose jobs come
    in an order by the seed, `gap` seconds apart, and have a GPU each. Raises `DataError`."""
    if text.lstrip()[:1] in ("[", "{"):
        return _philly_log(text, name)
    rows = csv.DictReader(io.StringIO(text))
    if "runtime" not in (rows.fieldnames or ()):
        raise DataError(f"{name}: neither Philly's job log nor a table of run times")
    times = []
    for number, row in enumerate(rows, 2):
        try:
            times.append(float(row["runtime"]))
        except (ValueError, TypeError) as error:
            raise DataError(f"{name}: line {number}: {error}") from error
    times = [time for time in times if 0 < time < math.inf]
    random.Random(seed).shuffle(times)
    width = len(str(len(times)))
    return [Job(f"job-{k:0{width}d}", k * gap, time, 1, spin=0.0) for k, time in enumerate(times)]


def _philly_log(text: str, name: str) -> list[Job]:
    try:
        log = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: {error}") from error
    found: list[tuple[datetime, str, float, int]] = []
    for number, entry in enumerate(log if isinstance(log, list) else [log], 1):
        try:
            submitted = datetime.fromisoformat(entry["submitted_time"])
            work, widest = 0.0, 0
            for attempt in entry["attempts"]:
                gpus = sum(len(part["gpus"]) for part in attempt["detail"])
                if attempt["start_time"] in (None, "None") or attempt["end_time"] in (None, "None"):
                    continue  # it never began, or still ran
                begin, end = (datetime.fromisoformat(attempt[key])
                              for key in ("start_time", "end_time"))  # fmt: skip
                work += gpus * (end - begin).total_seconds()
                widest = max(widest, gpus)
            title = str(entry["jobid"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{name}: job {number}: {type(error).__name__}: {error}") from error
        if work > 0:
            found.append((submitted, title, work, widest))
    begun = min((submitted for submitted, *_ in found), default=None)
    return [
        Job(title, (submitted - begun).total_seconds() if begun else 0.0, work, widest, spin=0.0)
        for submitted, title, work, widest in found
    ]


def machines(text: str, name: str) -> list[HostSpec]:
    """Return the machines of Alibaba's node lists, of 2023 or of 2026. Raises `DataError`."""
    rows = csv.DictReader(io.StringIO(text))
    fields = rows.fieldnames or ()
    if "cpu_milli" in fields and "sn" in fields:
        title, cores, part = "sn", "cpu_milli", 1000.0
    elif "cpu_num" in fields and "node_name" in fields:
        title, cores, part = "node_name", "cpu_num", 1.0
    else:
        raise DataError(f"{name}: not a node list of Alibaba's: no columns sn and cpu_milli")
    found = []
    for number, row in enumerate(rows, 2):
        try:
            cpus, memory = float(row[cores]) / part, int(row.get("memory_mib") or 0) << 20
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{name}: line {number}: {error}") from error
        if not 0 < cpus < 1e6 or memory < 0:
            raise DataError(f"{name}: line {number}: CPUs are more than 0")
        found.append(HostSpec(row[title], cpus, memory))
    return found
