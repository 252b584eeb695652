"""From times alone to jobs of the simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from dltools.sim.workload import Job, LearningCurve
from runner.measured import LiveJob, LiveRun
from runner.runs import is_endless

_ENDLESS_S = 900.0
"""For how long a simulated endless job would train alone."""

_WARM_S = 20.0
"""After which all servers have started, and nobody waits for a start any more (s)."""

_POINTS = 200
"""Points of a fitted curve."""


def machine_factor(jobs: Sequence[Job], together: LiveRun, cpus: int) -> float:
    """Return how much more CPU requests cost on this machine than the file says, from servers that
    kept all CPUs busy together; 1 where nothing serves."""
    cost = {job.name: job for job in jobs}
    used = 0.0
    for seen in together.jobs:
        job = cost[seen.name]
        if not job.serves:
            continue
        latencies = [value for time, value in seen.latencies if time > _WARM_S]
        if latencies:
            used += job.request / (fmean(latencies) + job.think)
    return cpus / used if used else 1.0


def scaled(job: Job, factor: float) -> Job:
    """Return a server whose requests cost `factor` times as much, and may take as much longer:
    it asks the same share of a slower machine."""
    qoe = None if job.qoe is None else round(job.qoe * factor, 4)
    return replace(job, request=job.request * factor, qoe=qoe) if job.serves else job


def with_targets(run: LiveRun, jobs: Sequence[Job]) -> LiveRun:
    """Return a run whose servers had the targets of jobs."""
    targets = {job.name: job.qoe for job in jobs}
    return replace(run, jobs=[replace(seen, target=targets[seen.name]) for seen in run.jobs])


def fitted(job: Job, alone: LiveJob, cpus: int) -> Job:
    """Return a training with the start-up, work, shutdown and curve that it showed alone.

    Its epochs take equally long; what comes before the first and after the last is start-up and
    shutdown.
    """
    cores = min(job.threads, cpus)
    if len(alone.progress) < 2:
        return _fitted_to_end(job, alone, cores)
    (first, _), (last, _) = alone.progress[0], alone.progress[-1]
    epoch = max(1e-3, (last - first) / (len(alone.progress) - 1))
    epochs = max(len(alone.progress), round(_ENDLESS_S / epoch)) if is_endless(job) else job.epochs
    startup = max(0.0, first - epoch)
    shutdown = max(0.0, alone.completion - last) if alone.completion is not None else 0.0
    step = max(1, len(alone.progress) // _POINTS)
    table = tuple((number / epochs, value) for number, (_, value) in enumerate(alone.progress, 1))[
        ::step
    ]
    metric = job.curve.metric
    curve = LearningCurve(metric, "points", table=table)
    return replace(
        job,
        work=epoch * epochs * cores,
        epochs=epochs,
        startup=startup,
        shutdown=shutdown,
        curve=curve,
    )


def _fitted_to_end(job: Job, alone: LiveJob, cores: int) -> Job:
    """Return a job that reports too little to tell its start-up, which the file says then."""
    if alone.completion is None:
        return job
    work = max(0.1, alone.completion - job.startup) * cores
    return replace(job, work=work, epochs=max(1, min(job.epochs, len(alone.progress))))


def as_toml(jobs: Sequence[Job], cpus: int) -> str:
    """Return a workload file of the jobs."""
    tables = [f"[[node]]\ncpus = {cpus}\n", *(_table(job) for job in jobs)]
    return "\n".join(tables)


def _table(job: Job) -> str:
    keys = (
        "name",
        "arrival",
        "work",
        "threads",
        "epochs",
        "startup",
        "shutdown",
        "first",
        "final",
        "request",
        "think",
        "duration",
        "qoe",
        "spin",
    )
    found: dict[str, Any] = {key: getattr(job, key) for key in keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in found.items() if value is not None]
    curve = job.curve
    points = json.dumps([list(pair) for pair in curve.table])
    told = (
        f"start = {curve.start}, end = {curve.end}, rate = {curve.rate}"
        if curve.kind != "points"
        else f"table = {points}"
    )
    lines.append(f'curve = {{ metric = "{curve.metric}", kind = "{curve.kind}", {told} }}')
    return "[[job]]\n" + "\n".join(lines) + "\n"
