"""Gavel's traces (Narayanan et al., OSDI 2020).

A line per job, separated by tabs: kind, command, directory, flag, data, steps, scale factor,
priority, deadline, arrival. How long a job takes is its steps over the throughput of its kind at
its scale, from the table of throughputs that the authors published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dltools.errors import DataError
from dltools.sim.workload import Job

_FIELDS = 10


def gavel_jobs(
    text: str, throughputs: Mapping[str, Any], name: str, gpu: str = "v100"
) -> list[Job]:
    """Return the jobs of a trace; `throughputs` are steps a second by GPU and (kind, scale).

    Raises `DataError` with the line and what is wrong.
    """
    known = throughputs.get(gpu)
    if not isinstance(known, Mapping):
        raise DataError(f"{name}: the throughputs have no GPU called {gpu}")
    return [
        _job(line, number, known, f"{name}: line {number}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]


def _job(line: str, number: int, known: Mapping[str, Any], where: str) -> Job:
    fields = line.split("\t")
    if len(fields) != _FIELDS:
        raise DataError(f"{where}: a Gavel trace has {_FIELDS} fields, not {len(fields)}")
    try:
        steps, scale, arrival = float(fields[5]), int(fields[6]), float(fields[9])
        rate = float(known[f"('{fields[0]}', {scale})"]["null"])
    except (ValueError, OverflowError) as error:
        raise DataError(f"{where}: {error}") from error
    except (KeyError, TypeError) as error:
        raise DataError(f"{where}: no throughput of {fields[0]} on {scale} GPUs") from error
    if not (0 < steps < math.inf and rate > 0 and scale > 0 and 0 <= arrival < math.inf):
        raise DataError(f"{where}: steps, scale and throughput must be more than 0")
    kind = fields[2].split("/")[0] or fields[0].split()[0]
    return Job(f"{kind}-{number}", arrival, steps / rate * scale, scale, spin=0.0)
