"""Others' cluster traces as jobs. A GPU of theirs is a CPU of ours: what is shared out is the same.

`gavel`: a line per job, tab-separated: kind, command, directory, flag, data, steps, scale factor,
priority, deadline, arrival (Narayanan et al., OSDI 2020); how long it takes is its steps over the
throughput of its kind at its scale, from their table. `alibaba`: the pods of the 2023 GPU trace, a
row each: what CPU a pod asked for, from when it was scheduled until it was deleted (Weng et al.,
ATC 2023). Neither tells a learning curve: the jobs have the usual one.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

from dltools.errors import DataError
from dltools.sim.workload import Job

KINDS = ("gavel", "alibaba")
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
