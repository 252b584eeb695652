"""Runs held against each other: a row per policy, per job, or per candidate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dltools.sim.candidates import CRITERIA, Candidate, score
from dltools.sim.outcome import JobResult, summarise

Runs = Sequence[Sequence[JobResult]]
"""Repeats of one policy's run."""

_COMPARED = ("makespan", "mean_completion", "time_to_first", "satisfied")


def by_policy(runs: Mapping[str, Runs]) -> list[dict[str, Any]]:
    """Return a row per policy: means over the repeats, and ratios to the first policy."""
    rows: list[dict[str, Any]] = []
    for name, repeats in runs.items():
        row = {"policy": name, **means(repeats)}
        base = rows[0] if rows else row
        rows.append(row | {f"{key}_ratio": _ratio(row[key], base[key]) for key in _COMPARED})
    return rows


def by_job(runs: Mapping[str, Runs], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row per policy, seed and job."""
    return [
        {"policy": name, "seed": seed, **dataclasses.asdict(one), "completion": one.completion}
        for name, repeats in runs.items()
        for seed, results in zip(seeds, repeats, strict=True)
        for one in results
    ]


def ranked(
    tried: Sequence[Candidate], runs: Sequence[Runs], criterion: str
) -> list[dict[str, Any]]:
    """Return a row per candidate, the best first, with the dl-plan command that does it and its
    ratio to the first candidate; [] where no run says anything by this criterion."""
    field = CRITERIA[criterion][0]
    entries = []
    for place, (one, repeats) in enumerate(zip(tried, runs, strict=True)):
        worths = [score(summarise(results), criterion) for results in repeats]
        entries.append((math.fsum(worths) / len(worths), place, one, means(repeats)))
    if all(math.isinf(worth) for worth, *_ in entries):
        return []
    base = entries[0][3][field]
    return [
        {"policy": one.policy, "realize": one.mode, "set": " ".join(one.assignments), **found,
         f"{field}_ratio": _ratio(found[field], base), "command": one.command}
        for _, _, one, found in sorted(entries, key=lambda entry: entry[:2])
    ]  # fmt: skip


def means(repeats: Runs) -> dict[str, Any]:
    """Return the means over repeats of what a run comes to, None where no repeat has it."""
    summaries = [dataclasses.asdict(summarise(results)) for results in repeats]
    found: dict[str, Any] = {}
    for key in summaries[0]:
        known = [summary[key] for summary in summaries if not math.isnan(summary[key])]
        found[key] = math.fsum(known) / len(known) if known else None
    return found


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base
