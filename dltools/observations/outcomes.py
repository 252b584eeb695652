"""What became of the jobs of a run, and its summary. A simulation or a recording gives them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SATISFIED = 0.10
"""The fraction of a response-time target by which a response time may differ (DQoES's alpha)."""


def satisfies(latency: float, target: float | None) -> bool:
    """Tell whether a response time (s) keeps its target; NaN never does."""
    return target is not None and abs(latency - target) <= SATISFIED * target


@dataclass(slots=True)
class JobResult:
    """What became of one job. Times are in seconds since the run began; None is "never"."""

    name: str
    """The job's name."""

    node: str
    """Its last host, "" where it had none."""

    arrival: float
    """When it arrived."""

    start: float | None = None
    """When it began to run."""

    finish: float | None = None
    """When it ended; None too where it failed."""

    first: float | None = None
    """When its first target was met."""

    final: float | None = None
    """When its final target was met."""

    served: float = 0.0
    """For how many seconds it answered requests."""

    satisfied: float = 0.0
    """For how many of these seconds its response time was within 10 % of its target."""

    cpu: float = 0.0
    """The CPU seconds that it used, spinning included."""

    migrations: int = 0
    """How often it moved to another host."""

    exit_code: int | None = None
    """That of a job that failed; None where it did not fail, or where that is unknown."""

    gpu: float = 0.0
    """The GPU seconds that it used."""

    waited: float | None = None
    """For how many seconds it had no place, was paused, or could do next to nothing; None where
    that is unknown."""

    user: str = ""
    """Whose it is, "" where nothing says so."""

    joules: float = 0.0
    """The energy of the GPUs for it (J)."""

    job: str = ""
    """The job of several containers that it is one of, "" for none."""

    @property
    def completion(self) -> float | None:
        """Seconds from its arrival to its end."""
        return None if self.finish is None else self.finish - self.arrival


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run, in seconds; NaN where no job has the value.

    `unfinished` counts the jobs that did not end, those that `failed` included: of them only the
    targets that they met count. `satisfied` is the mean number of serving jobs that kept their
    response-time targets.
    """

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
    """Return the summary of the jobs. The completion of serving jobs is left out: they end when
    they are told to."""
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
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else math.nan
