"""What was measured of a list, as it is kept in a JSON file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

Series = list[tuple[float, float]]
"""Pairs of (seconds since the arrival, value)."""


@dataclass(frozen=True)
class LiveJob:
    """One job of a run. Times are in seconds from its arrival; None is "never".

    `exit_code`: None for a job that was still running. `progress`: a point for each report of the
    metric to judge it by. `latencies`: response times of a job that serves; `target`: the one that
    it was asked to keep (s). `to_first`: when it met its first target.
    """

    name: str
    arrival: float
    completion: float | None
    exit_code: int | None
    progress: Series
    latencies: Series
    to_first: float | None
    target: float | None = None

    def scaled(self, factor: float) -> LiveJob:
        """Return the same job on a machine that takes `factor` times as long."""

        def longer(seconds: float | None) -> float | None:
            return None if seconds is None else seconds * factor

        return dataclasses.replace(
            self,
            completion=longer(self.completion),
            progress=[(time * factor, value) for time, value in self.progress],
            to_first=longer(self.to_first),
        )

    @property
    def first_report(self) -> float | None:
        """When it first reported."""
        return self.progress[0][0] if self.progress else None


@dataclass(frozen=True)
class LiveRun:
    """One run of all jobs under an arm. `makespan` (s): to the last end of a job that ends.
    `lasted` (s): from the time when our own processes had started. They used `own_start` CPU
    seconds by then, and `own_cpu` after. `repetition` counts from 1; the runs of one repetition
    followed each other."""

    arm: str
    jobs: list[LiveJob]
    makespan: float | None
    lasted: float
    own_cpu: float
    own_start: float = 0.0
    repetition: int = 1

    @property
    def completions(self) -> dict[str, float]:
        """Completion times (s) of the jobs that ended."""
        return {job.name: job.completion for job in self.jobs if job.completion is not None}


@dataclass
class Measured:
    """All about a list.

    `alone`: each job on its own, in the mean of `seconds_alone` (a machine's speed drifts).
    `cores`: as many as it can use. `factor`: of what the file says that requests cost, as newest
    measured. `options`: of dl-plan, by arm. `simulated`: completion times by arm and job, of
    several simulations; `simulated_satisfied`: satisfied models by arm. `bound`: the clairvoyant
    mean (s).
    """

    name: str
    cpus: int
    when: str
    serves: bool = False
    has_targets: bool = False
    cores: dict[str, float] = field(default_factory=dict)
    alone: dict[str, LiveJob] = field(default_factory=dict)
    seconds_alone: dict[str, list[float]] = field(default_factory=dict)
    runs: list[LiveRun] = field(default_factory=list)
    options: dict[str, list[str] | None] = field(default_factory=dict)
    factor: float = 1.0
    spin: float | None = None
    bound: float | None = None
    simulated: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    simulated_satisfied: dict[str, float] = field(default_factory=dict)

    def add_alone(self, found: Mapping[str, LiveJob]) -> None:
        """Add one more run of each job on its own."""
        for name, job in found.items():
            old = self.alone.setdefault(name, job)
            if job.completion is None or old.completion is None:
                continue
            seconds = self.seconds_alone.setdefault(name, [])
            seconds.append(job.completion)
            self.alone[name] = old.scaled(fmean(seconds) / old.completion)

    @property
    def repetitions(self) -> int:
        """How many repetitions were measured."""
        return max((run.repetition for run in self.runs), default=0)

    @property
    def arms(self) -> Sequence[str]:
        """The arms, in the order in which they ran."""
        return list(dict.fromkeys(run.arm for run in self.runs))

    def of_arm(self, arm: str) -> list[LiveRun]:
        """Return the repetitions of an arm."""
        return [run for run in self.runs if run.arm == arm]


def save(measured: Measured, path: Path) -> None:
    """Write the file, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(dataclasses.asdict(measured)) + "\n")
    part.replace(path)


def load(path: Path) -> Measured:
    """Return what was saved."""
    data = json.loads(path.read_text())
    runs = [LiveRun(**{**run, "jobs": [_job(job) for job in run["jobs"]]}) for run in data["runs"]]
    alone = {name: _job(job) for name, job in data["alone"].items()}
    return Measured(**{**data, "runs": runs, "alone": alone})


def _job(data: dict[str, Any]) -> LiveJob:
    series = {
        key: [(time, value) for time, value in data[key]] for key in ("progress", "latencies")
    }
    return LiveJob(**{**data, **series})
