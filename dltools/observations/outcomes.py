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
    """What became of one job. Times are in seconds since the run began; None is "never".

    `node`: its last host. `first` and `final`: when its targets were met. `served`: for how many
    seconds it answered requests, `satisfied`: for how many of them within 10 % of its response-time
    target. `cpu`: the CPU seconds that it used, spinning included; `gpu`: the GPU seconds, `joules`
    the energy of the GPUs for it. `job`: the job of several containers that it is one of, or "".
    `waited`: for how many seconds it had no place, was paused, or could do next to nothing; None
    where that is unknown. `user`: whose it is, "" where nothing says so. `exit_code`: that of a job
    that failed, which has no `finish`; None where it did not fail, or where that is unknown.
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
    gpu: float = 0.0
    waited: float | None = None
    user: str = ""
    joules: float = 0.0
    job: str = ""

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
