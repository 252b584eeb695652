"""How long serving jobs kept their response-time targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from dltools.observations.containers import Series, SeriesPoint
from dltools.observations.outcomes import satisfies
from dltools.report.jobs import ObservedJob
from dltools.report.run import Run


@dataclass(frozen=True, slots=True)
class Service:
    """For how many seconds a job answered, and for how many of them within its target."""

    served: float
    satisfied: float


class _Change(NamedTuple):
    time: float
    job: str
    is_satisfied: bool


def service(job: ObservedJob) -> Service:
    """Return how long a job served; a response time holds until the next one."""
    served = satisfied = 0.0
    for begin, end in pairwise(job.latencies):
        served += end.time - begin.time
        if satisfies(begin.value, job.targets.qoe_s):
            satisfied += end.time - begin.time
    return Service(served, satisfied)


def satisfied_jobs(jobs: Iterable[ObservedJob], run: Run, begun: float) -> Series:
    """Return how many jobs keep their response-time targets, at each time that this changes."""
    changes = sorted(change for job in jobs for change in _changes(job, run, begun))
    if not changes:
        return []
    is_satisfied: dict[str, bool] = {}
    series = [SeriesPoint(0.0, 0.0)]
    for change in changes:
        is_satisfied[change.job] = change.is_satisfied
        count = float(sum(is_satisfied.values()))
        if count != series[-1].value:
            series.append(SeriesPoint(change.time, count))
    return [*series, SeriesPoint(changes[-1].time, series[-1].value)]


def _changes(job: ObservedJob, run: Run, begun: float) -> list[_Change]:
    target = job.targets.qoe_s
    if target is None:
        return []
    found = [
        _Change(time - begun, job.name, satisfies(value, target)) for time, value in job.latencies
    ]
    ended = run.timelines[job.name].ended
    return found if ended is None else [*found, _Change(ended, job.name, False)]
