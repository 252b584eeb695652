"""Rows of results: one per policy, job or group of jobs, which dl-report and dl-sim show."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dltools.observations.outcomes import JobResult, summarise

Runs = Sequence[Sequence[JobResult]]
"""The results of the jobs in each repetition of one policy's run."""

_COMPARED = ("makespan", "mean_completion", "time_to_first", "satisfied")


def by_policy(
    runs: Mapping[str, Runs], baseline: str | None = None, key: str = "policy"
) -> list[dict[str, Any]]:
    """Return a row per policy: its name under `key`, means over the repetitions, and ratios to the
    baseline, which is the first policy by default."""
    rows = {name: means(repeats) for name, repeats in runs.items()}
    base = rows[baseline if baseline is not None else next(iter(runs))] if rows else {}
    return [
        {key: name, **row, **{f"{stat}_ratio": ratio(row[stat], base[stat]) for stat in _COMPARED}}
        for name, row in rows.items()
    ]


def by_job(
    runs: Mapping[str, Runs], seeds: Sequence[int], key: str = "policy"
) -> list[dict[str, Any]]:
    """Return a row per policy, seed and job."""
    return [
        {key: name, "seed": seed, **dataclasses.asdict(result), "completion": result.completion}
        for name, repeats in runs.items()
        for seed, results in zip(seeds, repeats, strict=False)
        for result in results
    ]


GROUPS: Mapping[str, tuple[str, Callable[[JobResult], str]]] = {
    "user": ("user", lambda result: result.user),
    "job": ("name", lambda result: result.job or result.name),
}
"""What jobs are grouped by: the column of a group's name, and that name, "" where nothing says it.
"""


def by_group(runs: Mapping[str, Runs], by: str) -> list[dict[str, Any]]:
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
                    "run": name,
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
    averages: dict[str, Any] = {}
    for key in summaries[0]:
        values = [summary[key] for summary in summaries if not math.isnan(summary[key])]
        averages[key] = math.fsum(values) / len(values) if values else None
    return averages


def ratio(value: float | None, base: float | None) -> float | None:
    """Return a value divided by its base, None if one is missing or the base is 0."""
    return None if value is None or not base else value / base


CRITERIA = {
    "mean_completion": "mean_completion",
    "makespan": "makespan",
    "time_to_target": "time_to_first",
    "satisfied": "satisfied",
}
"""The fields by which a row per policy may be judged, by the names of the criteria."""

_ALIKE = 0.01
"""Two values are called equal if they differ by less than this part: no model is more exact."""


def best_first(rows: Sequence[dict[str, Any]], criterion: str) -> list[dict[str, Any]]:
    """Return rows per policy in order of a criterion; those as good as the best one in the order
    that they had. [] if no run ended and has it."""
    field = CRITERIA[criterion]
    sign = -1 if field == "satisfied" else 1
    worth = {
        id(row): math.inf if row[field] is None or row["unfinished"] else sign * row[field]
        for row in rows
    }
    best = min(worth.values())
    if math.isinf(best):
        return []
    equal = best + _ALIKE * abs(best)
    return sorted(rows, key=lambda row: max(equal, worth[id(row)]))
