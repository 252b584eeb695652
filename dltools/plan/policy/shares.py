"""Rules for sharing a host that several policies use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dltools.plan.signals.container_history import ContainerHistory

_EPSILON = 1e-9


def cap(job: ContainerHistory, cpus: float) -> float:
    """Return the largest share that a job can use: its threads' part of the host's CPUs, all of its
    GPUs (ours)."""
    if job.uses_gpu or job.threads is None or job.threads <= 0 or cpus <= 0:
        return 1.0
    return min(1.0, job.threads / cpus)


def queue_shares(order: Sequence[ContainerHistory], cpus: float, floor: float) -> dict[str, float]:
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


def in_proportion(weights: Mapping[str, float], total: float, floor: float) -> dict[str, float]:
    """Return shares of `total` in proportion to weights, none below `floor` if `total` allows it.

    A job that would get less than the floor gets the floor, and the others share the rest.
    """
    n = len(weights)
    if n == 0:
        return {}
    if floor * n >= total:
        return dict.fromkeys(weights, total / n)
    most = max(weights.values())
    weights = {key: weight / most if most > 0 else 1.0 for key, weight in weights.items()}
    low: set[str] = set()
    while True:
        rest = total - floor * len(low)
        amount = math.fsum(weight for key, weight in sorted(weights.items()) if key not in low)
        below = {
            key
            for key, weight in weights.items()
            if key not in low and rest * weight / amount < floor
        }
        if not below:
            return {
                key: floor if key in low else rest * weight / amount
                for key, weight in weights.items()
            }
        low |= below


def beta_floor(n: int) -> float:
    """Return FlowCon's least share of n jobs, 1/(beta n) with beta = 1 + 1/n: that is 1/(n + 1)."""
    return 1 / (n + 1)
