"""What became of a simulated workload: a row per job, and what they come to together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SATISFIED = 0.10
"""Part of a response-time target within which it counts as met (DQoES's alpha)."""


def satisfies(latency: float, target: float | None) -> bool:
    """Tell whether a response time (s) keeps its target; NaN never does."""
    return target is not None and abs(latency - target) <= SATISFIED * target


@dataclass(slots=True)
class JobResult:
    """One job's fate, in seconds of virtual time; None is "never".

    `first` and `final` are when its targets were met, `satisfied` for how long it answered within
    10 % of its response-time target, of `served` seconds; `cpu` are the CPU seconds that it used,
    spinning included. `exit_code` is what it failed with, and then it has no `finish`; None for a
    job that did not fail, or of which that is not known.
    """

    name: str
    node: str
    arrival: float
    start: float | None = None
    finish: float | None = None
    first: float | None = None
    final: float | None = None
    served: float = 0.0
    satisfied: float = 0.0
    cpu: float = 0.0
    migrations: int = 0
    exit_code: int | None = None

    @property
    def completion(self) -> float | None:
        """Seconds from its arrival to its end."""
        return None if self.finish is None else self.finish - self.arrival


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run comes to: seconds, but `satisfied`, the mean number of serving jobs that are; NaN
    where no job has what it takes. Of the `unfinished`, who never ended or `failed`, only the
    targets that they met count."""

    jobs: int
    unfinished: int
    failed: int
    makespan: float
    mean_completion: float
    longest_completion: float
    time_to_first: float
    time_to_final: float
    satisfied: float


def summarise(results: Sequence[JobResult]) -> Summary:
    """Return what the jobs come to together. Serving jobs end when they are told to: their
    completion says nothing, and is left out."""
    trained = [r for r in results if r.served == 0]
    completions = [r.completion for r in trained if r.completion is not None]
    begun = min((r.arrival for r in results), default=0.0)
    ended = max((r.finish for r in results if r.finish is not None), default=math.nan)
    served = sum(r.served for r in results)
    span = max((r.served for r in results), default=0.0)
    return Summary(
        jobs=len(results),
        unfinished=sum(r.finish is None for r in results),
        failed=sum(r.exit_code is not None for r in results),
        makespan=ended - begun,
        mean_completion=_mean(completions),
        longest_completion=max(completions, default=math.nan),
        time_to_first=_mean(r.first - r.arrival for r in results if r.first is not None),
        time_to_final=_mean(r.final - r.arrival for r in results if r.final is not None),
        satisfied=sum(r.satisfied for r in results) / span if served else math.nan,
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found) if found else math.nan
