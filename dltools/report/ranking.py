"""Compares runs: a row per policy, job or group of jobs, and a ranking of candidates.

dl-report and dl-sim show the rows; `dl-sim --best` shows the ranking.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dltools.observations.outcomes import JobResult, Summary, summarise

Runs = Sequence[Sequence[JobResult]]
"""The results of the jobs in each repetition of one policy's run."""

_COMPARED = ("makespan", "mean_completion", "time_to_first", "satisfied")


def by_policy(
    runs: Mapping[str, Runs], baseline: str | None = None, key: str = "policy"
) -> list[dict[str, Any]]:
    """Return a row per policy: its name under `key`, means over the repetitions, and ratios to the
    baseline, which is the first policy by default."""
    found = {name: means(repeats) for name, repeats in runs.items()}
    base = found[baseline if baseline is not None else next(iter(runs))] if found else {}
    return [
        {key: name, **row, **{f"{one}_ratio": ratio(row[one], base[one]) for one in _COMPARED}}
        for name, row in found.items()
    ]


def ratio_spreads(
    runs: Mapping[str, Runs], baseline: str
) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the least and the greatest ratio of a repetition to the same repetition of the
    baseline, by run and field. Runs without repetitions, or with another number, are left out."""
    base = [dataclasses.asdict(summarise(results)) for results in runs[baseline]]
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, repeats in runs.items():
        if len(repeats) < 2 or len(repeats) != len(base) or name == baseline:
            continue
        own = [dataclasses.asdict(summarise(results)) for results in repeats]
        for key in _COMPARED:
            ratios = [
                one[key] / other[key]
                for one, other in zip(own, base, strict=True)
                if other[key] and math.isfinite(one[key] / other[key])
            ]
            if ratios:
                found.setdefault(name, {})[key] = min(ratios), max(ratios)
    return found


def by_job(
    runs: Mapping[str, Runs], seeds: Sequence[int], key: str = "policy"
) -> list[dict[str, Any]]:
    """Return a row per policy, seed and job."""
    return [
        {key: name, "seed": seed, **dataclasses.asdict(one), "completion": one.completion}
        for name, repeats in runs.items()
        for seed, results in zip(seeds, repeats, strict=False)
        for one in results
    ]


GROUPS: Mapping[str, tuple[str, Callable[[JobResult], str]]] = {
    "user": ("user", lambda one: one.user),
    "job": ("name", lambda one: one.job or one.name),
}
"""What jobs are grouped by: the column of a group's name, and that name, "" where nothing says it.
"""


def by_group(runs: Mapping[str, Runs], by: str, key: str = "run") -> list[dict[str, Any]]:
    """Return a row per run and group, sorted by name: the number of jobs, the CPU and GPU hours
    that they used and the joules of the GPUs for it, the hours that they waited, and how many
    finished and failed; means over the repetitions."""
    column, group_of = GROUPS[by]
    rows = []
    for name, repeats in runs.items():
        for group in sorted({group_of(job) for results in repeats for job in results}):
            own = [[job for job in results if group_of(job) == group] for results in repeats]
            rows.append(
                {
                    key: name,
                    column: group or None,
                    "job_count": _mean_of(own, lambda _: 1.0),
                    "cpu_hours": _mean_of(own, lambda job: job.cpu / HOUR_S),
                    "gpu_hours": _mean_of(own, lambda job: job.gpu / HOUR_S),
                    "joules": _mean_of(own, lambda job: job.joules),
                    "waited_hours": _mean_of(own, lambda job: (job.waited or 0.0) / HOUR_S),
                    "finished": _mean_of(own, lambda job: float(job.finish is not None)),
                    "failed": _mean_of(own, lambda job: float(job.exit_code is not None)),
                }
            )
    return rows


HOUR_S = 3600.0


def _mean_of(repeats: Runs, value: Callable[[JobResult], float]) -> float:
    """Return the sum over the jobs, averaged over the repetitions."""
    return math.fsum(value(job) for results in repeats for job in results) / len(repeats)


def means(repeats: Runs) -> dict[str, Any]:
    """Return the mean of each field of `Summary` over the repetitions that have it, else None."""
    summaries = [dataclasses.asdict(summarise(results)) for results in repeats]
    found: dict[str, Any] = {}
    for key in summaries[0]:
        known = [summary[key] for summary in summaries if not math.isnan(summary[key])]
        found[key] = math.fsum(known) / len(known) if known else None
    return found


def ratio(value: float | None, base: float | None) -> float | None:
    """Return a value divided by its base, None if one is missing or the base is 0."""
    return None if value is None or not base else value / base


_ALIKE = 0.01
"""Two values are called equal if they differ by less than this part: no model is more exact."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """What is compared: a field of `Summary`, and whether more is better."""

    field: str
    more_is_better: bool = False

    def score(self, summary: Summary) -> float:
        """Return the score of a run; less is better. It is infinity for a run that did not end, or
        that does not have the field."""
        value: float = getattr(summary, self.field)
        if math.isnan(value) or summary.unfinished:
            return math.inf
        return -value if self.more_is_better else value


CRITERIA = {
    "mean_completion": Criterion("mean_completion"),
    "makespan": Criterion("makespan"),
    "time_to_target": Criterion("time_to_first"),
    "satisfied": Criterion("satisfied", more_is_better=True),
}
"""The criteria by name."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate that was tried: a policy with its mode and parameters, the dl-plan command that
    does the same, and its runs. `complexity` is less for a simpler candidate."""

    policy: str
    realize: str
    assignments: Sequence[str]
    command: str
    runs: Runs
    complexity: int = 0

    def scores(self, criterion: Criterion) -> list[float]:
        """Return the score of each of its runs."""
        return [criterion.score(summarise(results)) for results in self.runs]


def ranked(trials: Sequence[Trial], criterion: Criterion) -> list[dict[str, Any]]:
    """Return a row per trial, with its ratio to the first trial; [] if no run has the field of the
    criterion. Trials as good as the best one come first, the simplest of them on top."""
    scores = [trial.scores(criterion) for trial in trials]
    worth = [math.fsum(found) / len(found) for found in scores]
    if all(map(math.isinf, worth)):
        return []
    best = scores[worth.index(min(worth))]
    base = means(trials[0].runs)[criterion.field]

    def place(number: int) -> tuple[float, ...]:
        if _is_as_good(scores[number], best):
            return (0, trials[number].complexity, worth[number], number)
        return (1, worth[number], number)

    order = sorted(range(len(trials)), key=place)
    return [
        _row(trials[number], criterion, base, is_as_good=_is_as_good(scores[number], best))
        for number in order
    ]


def _is_as_good(scores: Sequence[float], best: Sequence[float]) -> bool:
    """Tell whether runs are as good as the best ones: the mean difference is below a hundredth, or
    not above its spread over the repetitions."""
    if any(map(math.isinf, scores)):
        return False
    differences = [one - other for one, other in zip(scores, best, strict=True)]
    spread = statistics.stdev(differences) if len(differences) > 1 else 0.0
    return statistics.fmean(differences) <= max(spread, _ALIKE * abs(statistics.fmean(best)))


def _row(
    trial: Trial, criterion: Criterion, base: float | None, *, is_as_good: bool
) -> dict[str, Any]:
    found = means(trial.runs)
    return {
        "policy": trial.policy,
        "realize": trial.realize,
        "set": " ".join(trial.assignments),
        **found,
        f"{criterion.field}_ratio": ratio(found[criterion.field], base),
        "as_good_as_best": is_as_good,
        "command": trial.command,
    }
