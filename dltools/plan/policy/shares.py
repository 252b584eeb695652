"""Rules for sharing a host that several policies use."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

from dltools.plan.signals.job import Job

_EPSILON = 1e-9


def cap(job: Job, cpus: float) -> float:
    """Return the largest share that a job can use: its threads' part of the host's CPUs, all of
    another resource (ours)."""
    if job.use.resource.is_device or not job.use.threads or job.use.threads < 0 or cpus <= 0:
        return 1.0
    return min(1.0, job.use.threads / cpus)


def queue_shares(order: Sequence[Job], cpus: float, floor: float) -> dict[str, float]:
    """Return shares that sum to at most 1: `floor` to each, then to each in order as much as it
    can use."""
    floor = min(floor, 1 / max(1, len(order)))
    shares = {job.id: floor for job in order}
    left = 1.0 - floor * len(order)
    for job in order:
        more = min(left, max(0.0, cap(job, cpus) - floor))
        shares[job.id] += more
        left -= more
    return with_leftover(shares, left)


def with_leftover(shares: Mapping[str, float], left: float) -> dict[str, float]:
    """Return shares, each raised by `left`, the share that no job can use, to at most 1.

    Every job already has what its threads can use, so that none needs a limit.
    """
    if left <= _EPSILON:
        return dict(shares)
    return {key: min(1.0, share + left) for key, share in shares.items()}


_Key = TypeVar("_Key", bound=Hashable)
_NO_BOUNDS: Mapping[Any, float] = {}


def in_proportion(
    weights: Mapping[_Key, float],
    total: float,
    floor: float = 0.0,
    most: Mapping[_Key, float] = _NO_BOUNDS,
) -> dict[_Key, float]:
    """Return parts of `total` in proportion to weights, none below `floor` if `total` allows it,
    and none above its own `most` (weighted max-min fairness); less than `total` where all have
    that."""
    if not weights:
        return {}
    floor = min(floor, total / len(weights))
    heaviest = max(weights.values())
    slopes = {key: weight / heaviest if heaviest else 1.0 for key, weight in weights.items()}
    caps = {key: max(0.0, most.get(key, math.inf)) for key in weights}
    changes: list[tuple[float, float]] = []  # a part grows from its floor on, until its most
    for key, slope in slopes.items():
        if slope > 0:
            changes.append((min(floor, caps[key]) / slope, slope))
            changes.append((caps[key] / slope, -slope))
    level, slope = 0.0, 0.0
    left = total - math.fsum(min(floor, cap) for cap in caps.values())
    for at, change in sorted(changes):
        more = slope * (at - level) if slope > 0 else 0.0
        if more >= left:
            break
        level, left, slope = at, left - more, slope + change
    if slope > 0:
        level += left / slope
    return {key: min(caps[key], max(floor, level * slopes[key])) for key in weights}


def beta_floor(n: int) -> float:
    """Return FlowCon's least share of n jobs, 1/(beta n) with beta = 1 + 1/n: that is 1/(n + 1)."""
    return 1 / (n + 1)
