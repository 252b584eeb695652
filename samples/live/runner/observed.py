"""What the recording of a run says of its jobs."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from dltools.observations.container_records import read_containers
from dltools.observations.formats.registry import read_table
from dltools.report.observed_run import ObservedJob, observed_jobs
from runner.measured import Series


@dataclass(frozen=True)
class Observed:
    """Jobs by name; times are in seconds since `begun` (Unix seconds)."""

    jobs: dict[str, ObservedJob]
    begun: float

    def progress(self, name: str) -> Series:
        """Return the finite values of the metric to judge a job by."""
        job = self.jobs.get(name)
        points = job.series.get(job.metric, []) if job is not None else []
        return [(time - self.begun, value) for time, value in points if math.isfinite(value)]

    def latencies(self, name: str) -> Series:
        """Return the response times of a job (s)."""
        job = self.jobs.get(name)
        return [(time - self.begun, value) for time, value in job.latencies] if job else []

    def time_to_first(self, name: str, arrival: float) -> float | None:
        """Return the seconds from a job's arrival until it met its first target, None for never."""
        job = self.jobs.get(name)
        if job is None or job.targets.first is None:
            return None
        meets = (
            time
            for time, value in self.progress(name)
            if job.targets.meets(value, job.targets.first)
        )
        return next((time - arrival for time in meets), None)


def observed(recording: Path, begun: float, containers: Collection[str]) -> Observed:
    """Return what was seen of the containers with these ids, by the names of their jobs."""
    with recording.open("rb") as stream:
        records = read_containers([read_table(stream, recording.name)])
    found = observed_jobs(one for one in records.containers if one.id in containers)
    return Observed({_job_name(job.name): job for job in found}, begun)


def _job_name(container: str) -> str:
    """Return the job of a container's name, live-RUN-JOB."""
    return container.split("-", 2)[2]
