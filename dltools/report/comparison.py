"""Runs compared: a row per policy, or per job."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dltools.observations.outcomes import JobResult, summarise

Runs = Sequence[Sequence[JobResult]]
"""The results of the jobs, for each repeat of one policy's run."""

_COMPARED = ("makespan", "mean_completion", "time_to_first", "satisfied")


def by_policy(
    runs: Mapping[str, Runs], baseline: str | None = None, key: str = "policy"
) -> list[dict[str, Any]]:
    """Return a row per policy, named under `key`: means over the repeats, and ratios to the
    baseline, by default the first."""
    found = {name: means(repeats) for name, repeats in runs.items()}
    base = found[baseline if baseline is not None else next(iter(runs))] if found else {}
    return [
        {key: name, **row, **{f"{one}_ratio": ratio(row[one], base[one]) for one in _COMPARED}}
        for name, row in found.items()
    ]


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


def means(repeats: Runs) -> dict[str, Any]:
    """Return the mean of each field of `Summary` over the repeats that have it, else None."""
    summaries = [dataclasses.asdict(summarise(results)) for results in repeats]
    found: dict[str, Any] = {}
    for key in summaries[0]:
        known = [summary[key] for summary in summaries if not math.isnan(summary[key])]
        found[key] = math.fsum(known) / len(known) if known else None
    return found


def ratio(value: float | None, base: float | None) -> float | None:
    """Return a value over its base, None where one is missing or the base is 0."""
    return None if value is None or not base else value / base
