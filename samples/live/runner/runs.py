"""One live run: the jobs of a list as containers, under an arm."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dltools.sim.workload import Job, labels_of
from runner import engine
from runner.arms import Arm
from runner.measured import LiveJob, LiveRun
from runner.observed import Observed, observed
from runner.pipe import INTERVAL_S, Pipe

ENDLESS_WORK = 1e6
"""CPU seconds: a training with so much work never ends; it is stopped when all others have."""


def is_endless(job: Job) -> bool:
    """Tell whether a job goes on until it is stopped."""
    return not job.serves and job.work >= ENDLESS_WORK


@dataclass(frozen=True)
class _Started:
    job: Job
    container: str


@dataclass(frozen=True)
class Limits:
    """`run_s`: when a run is given up. `endless_s`: how long a list of endless jobs alone runs."""

    run_s: float = 3600.0
    endless_s: float = 20.0


def live_run(jobs: Sequence[Job], arm: Arm, files: Path, limits: Limits) -> LiveRun:
    """Run jobs to their ends under an arm; `files` is how the names of its recordings begin.
    Raises `EngineError` and `PipeError`."""
    label = f"{engine.LABEL}={uuid.uuid4().hex[:8]}"
    with _created(jobs, label) as started:
        pipe = Pipe(arm, label, files)
        try:
            begun = datetime.now(UTC)
            _follow_timetable(started, limits, pipe)
            found = {one.job.name: engine.state(one.container) for one in started}
            time.sleep(INTERVAL_S + 0.5)  # the sample that has the last reports
        finally:
            pipe.stop()
    seen = observed(pipe.recording, begun.timestamp(), {one.container for one in started})
    jobs_seen = [_live_job(job, found[job.name], begun, seen) for job in jobs]
    ends = [one.arrival + one.completion for one in jobs_seen if one.completion is not None]
    makespan = max(ends, default=None)
    lasted, own_start = time.time() - begun.timestamp(), pipe.start_cpu_seconds
    own_cpu = pipe.cpu_seconds - own_start
    return LiveRun(arm.name, jobs_seen, makespan, lasted, own_cpu, own_start)


@contextmanager
def _created(jobs: Sequence[Job], label: str) -> Iterator[list[_Started]]:
    """Create the containers, and remove them at the end."""
    key, _, run = label.partition("=")
    made: list[_Started] = []
    try:
        for job in jobs:
            labels = {**labels_of(job), **job.container.labels, key: run}
            name = f"live-{run}-{job.name}"
            spec = job.container
            made.append(_Started(job, engine.create(spec.image, spec.command, name, labels)))
        yield made
    finally:
        engine.remove_all(label)


def _follow_timetable(started: Sequence[_Started], limits: Limits, pipe: Pipe) -> None:
    """Start each container at its arrival, stop servers at their ends, and wait for the others."""
    timetable: list[tuple[float, tuple[str, ...], str]] = [
        (one.job.arrival, ("start",), one.container) for one in started
    ]
    timetable += [
        (one.job.arrival + one.job.duration, ("stop", "--time", "5"), one.container)
        for one in started
        if one.job.serves
    ]
    begun = time.monotonic()
    commands = []
    for seconds, command, container in sorted(timetable):
        while (left := begun + seconds - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))
            pipe.check()
        commands.append(engine.begin(*command, container))
    for one in commands:
        engine.finish(one)
    finite = [one.container for one in started if not is_endless(one.job)]
    end = begun + (limits.run_s if finite else limits.endless_s)
    waiting = engine.begin("wait", *finite) if finite else None
    try:
        while time.monotonic() < end and (waiting is None or waiting.poll() is None):
            time.sleep(0.2)
            pipe.check()
    finally:
        if waiting is not None:
            waiting.kill()
            waiting.communicate()


def _live_job(job: Job, state: engine.State, begun: datetime, seen: Observed) -> LiveJob:
    def after(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - begun).total_seconds() - job.arrival

    has_ended = state.ended is not None and not is_endless(job)
    progress = [(time - job.arrival, value) for time, value in seen.progress(job.name)]
    return LiveJob(
        job.name,
        job.arrival,
        after(state.ended) if has_ended and state.exit_code == 0 else None,
        state.exit_code if has_ended else None,
        progress,
        [(time - job.arrival, value) for time, value in seen.latencies(job.name)],
        seen.time_to_first(job.name, job.arrival),
        job.qoe,
    )
