"""A recording as a run: when each job came and went, what CPU it got, and what it reported."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dltools.errors import DataError
from dltools.observations.container_reader import read_containers
from dltools.observations.outcomes import JobResult
from dltools.report.jobs import ObservedJob, observed_jobs
from dltools.report.run import Run, Timeline
from dltools.report.satisfaction import satisfied_jobs, service
from dltools.report.timelines import timeline, weight_sums

if TYPE_CHECKING:
    import pyarrow as pa

_STOPPED = (130, 137, 143)
"""Exit codes of containers that were told to end."""


def observed_run(table: pa.Table, label: str, name: str) -> Run:
    """Return what a recording shows.

    The jobs of a saved log, whose host showed no container, are known from their progress alone:
    not what CPU they used, nor whether they finished. Raises `DataError` where there is neither a
    container nor progress.
    """
    records = read_containers(table)
    if not records.containers:
        raise DataError(f"{name}: no container and no progress was observed: nothing to report")
    begun = min(one.first_seen for one in records.containers)
    run = Run(label, begun=begun, is_sampled=any(one.is_sampled for one in records.containers))
    jobs = observed_jobs(records.containers)
    weights = weight_sums(records.containers)
    for job in jobs:
        run.timelines[job.name] = timeline(job, weights, begun, records.last_sampled)
    results = [_result(job, run.timelines[job.name], begun) for job in jobs]
    run.repeats = [sorted(results, key=lambda result: (result.arrival, result.name))]
    run.satisfied = satisfied_jobs(jobs, run, begun)
    return run


def _result(job: ObservedJob, timeline: Timeline, begun: float) -> JobResult:
    started = job.containers[0].started
    start = 0.0 if math.isnan(started) else max(0.0, started - begun)
    serving, exit_code = service(job), job.last.exit_code
    was_stopped = serving.served > 0 and exit_code in _STOPPED
    has_failed = timeline.ended is not None and bool(exit_code) and not was_stopped
    return JobResult(
        job.name,
        job.last.host,
        arrival=start,
        start=start,
        finish=None if has_failed else timeline.ended,
        first=_time_of_meeting(job, job.targets.first, begun),
        final=_time_of_meeting(job, job.targets.final, begun),
        served=serving.served,
        satisfied=serving.satisfied,
        cpu=math.fsum(part.cpu_seconds_since(begun) for part in job.containers),
        migrations=len(timeline.migrated),
        exit_code=exit_code if has_failed else None,
    )


def _time_of_meeting(job: ObservedJob, target: float | None, begun: float) -> float | None:
    if target is None:
        return None
    points = job.series.get(job.targets.metric or "", [])
    met = (time - begun for time, value in points if job.targets.meets(value, target))
    return next(met, None)
