"""Microsoft's job log of the Philly cluster (Jeon et al., ATC 2019), or run times alone."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dltools.errors import DataError
from dltools.sim.traces.rows import columns_of, rows_of
from dltools.sim.workload import Job


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt to run a job: how many GPUs it had, for how many seconds."""

    gpus: int
    seconds: float


def philly_jobs(text: str, name: str, gap: float, seed: int = 0) -> list[Job]:
    """Return the jobs of the log (JSON), or of a table of run times.

    Jobs of run times have a GPU each and arrive `gap` seconds apart, in an order that the seed
    decides. Raises `DataError`.
    """
    if text.lstrip()[:1] in ("[", "{"):
        return _logged_jobs(text, name)
    times = _run_times(text, name)
    random.Random(seed).shuffle(times)
    width = len(str(len(times)))
    return [Job(f"job-{k:0{width}d}", k * gap, time, 1, spin=0.0) for k, time in enumerate(times)]


def _run_times(text: str, name: str) -> list[float]:
    if "runtime" not in columns_of(text, name):
        raise DataError(f"{name}: neither Philly's job log nor a table of run times")
    times = []
    for where, values in rows_of(text, name):
        try:
            times.append(float(values["runtime"]))
        except (ValueError, TypeError) as error:
            raise DataError(f"{where}: {error}") from error
    return [time for time in times if 0 < time < math.inf]


def _logged_jobs(text: str, name: str) -> list[Job]:
    try:
        log = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: {error}") from error
    found: list[tuple[datetime, Job]] = []
    for number, entry in enumerate(log if isinstance(log, list) else [log], 1):
        try:
            attempts = list(_attempts(entry))
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


def _attempts(entry: Mapping[str, Any]) -> Iterator[_Attempt]:
    for attempt in entry["attempts"]:
        gpus = sum(len(part["gpus"]) for part in attempt["detail"])
        if attempt["start_time"] in (None, "None") or attempt["end_time"] in (None, "None"):
            continue  # it never began, or still ran
        begin, end = (datetime.fromisoformat(attempt[key]) for key in ("start_time", "end_time"))
        yield _Attempt(gpus, (end - begin).total_seconds())


def _since_the_first(found: list[tuple[datetime, Job]]) -> list[Job]:
    """Return the jobs; they arrive in seconds since the first of all was submitted."""
    begun = min((submitted for submitted, _ in found), default=None)
    return [
        replace(job, arrival=(submitted - begun).total_seconds() if begun else 0.0)
        for submitted, job in found
    ]
