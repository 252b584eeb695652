"""Runs held against each other: a row per policy, or per job."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dltools.outcome import JobResult, summarise

Runs = Sequence[Sequence[JobResult]]
"""Repeats of one policy's run."""

_COMPARED = ("makespan", "mean_completion", "time_to_first", "satisfied")


def by_policy(runs: Mapping[str, Runs]) -> list[dict[str, Any]]:
    """Return a row per policy: means over the repeats, and ratios to the first policy."""
    rows: list[dict[str, Any]] = []
    for name, repeats in runs.items():
        row = {"policy": name, **means(repeats)}
        base = rows[0] if rows else row
        rows.append(row | {f"{key}_ratio": ratio(row[key], base[key]) for key in _COMPARED})
    return rows


def by_job(runs: Mapping[str, Runs], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row per policy, seed and job."""
    return [
        {"policy": name, "seed": seed, **dataclasses.asdict(one), "completion": one.completion}
        for name, repeats in runs.items()
        for seed, results in zip(seeds, repeats, strict=True)
        for one in results
    ]


def means(repeats: Runs) -> dict[str, Any]:
    """Return the means over repeats of what a run comes to, None where no repeat has it."""
    summaries = [dataclasses.asdict(summarise(results)) for results in repeats]
    found: dict[str, Any] = {}
    for key in summaries[0]:
        known = [summary[key] for summary in summaries if not math.isnan(summary[key])]
        found[key] = math.fsum(known) / len(known) if known else None
    return found


def ratio(value: float | None, base: float | None) -> float | None:
    """Return a value over its base, None where there is none."""
    return None if value is None or not base else value / base
