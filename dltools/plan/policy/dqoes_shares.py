"""How DQoES moves CPU between models: as the paper says, or at once to what each needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dltools.plan.policy.container_history import ContainerHistory

OVER, SATISFIED, UNDER, UNKNOWN = "G", "S", "B", "?"

_MOST_GAIN = 5.0
"""Up to so many times beta, where the gain is adaptive (ours)."""

_LEAST = 0.1
"""The least share of a model, as a part of an equal share (ours)."""

_STEADY = 0.05
"""Shares stay where none would change by more than this part of itself (ours)."""


@dataclass(frozen=True, slots=True)
class Model:
    """A container with a target: its class, share, target o, response time p (seconds), and the
    seconds that the whole host needs for one of its requests, None where unknown."""

    job: ContainerHistory
    job_class: str
    share: float
    target: float
    latency: float | None
    metric: str
    demand: float | None = None

    @property
    def need(self) -> float:
        """The share of the host with which it would meet its target: its present one where
        nothing is known."""
        if self.latency is None or not self.demand:
            return self.share
        return min(1.0, self.demand / self.target)

    @property
    def quality(self) -> float:
        """q = o - p in seconds, 0 while p is unknown."""
        return 0.0 if self.latency is None else self.target - self.latency


@dataclass(frozen=True, slots=True)
class Shift:
    """The new shares by job id, and a note for the whole host."""

    shares: dict[str, float]
    note: str = ""


def direct_shares(models: Sequence[Model], alpha: float) -> Shift:
    """Give each model what it needs (ours); `alpha` is the part by which it may miss its target.

    Where all needs together are more than the host by that part or less, each gets that much less.
    Where they are more, models get theirs in order, the smallest first, so that as many as possible
    meet their targets; the others share what is left in proportion to their needs. No model gets
    less than a tenth of an equal share. Where all shares would nearly stay, they do.
    """
    if not models:
        return Shift({})
    floor = _LEAST / len(models)
    needs = {model.job.id: max(floor, model.need) for model in models}
    total = math.fsum(needs.values())
    if total <= 1.0:
        found = Shift(needs, "every target can be met")
    elif total <= 1.0 + alpha:
        shares = {key: need / total for key, need in needs.items()}
        found = Shift(shares, "every target can be met, within alpha")
    else:
        found = _smallest_first(needs, floor)
    old = {model.job.id: model.share for model in models}
    if all(abs(share - old[key]) <= _STEADY * old[key] for key, share in found.shares.items()):
        return Shift(old, found.note)
    return found


def _smallest_first(needs: Mapping[str, float], floor: float) -> Shift:
    """Meet the smallest needs, and share what is left in proportion to the others."""
    shares: dict[str, float] = {}
    left, waiting = 1.0, sorted(needs, key=lambda key: (needs[key], key))
    while waiting and needs[waiting[0]] + floor * (len(waiting) - 1) <= left:
        key = waiting.pop(0)
        shares[key] = needs[key]
        left -= needs[key]
    total = math.fsum(needs[key] for key in waiting)
    spare = left - floor * len(waiting)
    shares |= {key: floor + spare * needs[key] / total for key in waiting}
    return Shift(shares, f"the targets of {len(waiting)} are out of reach")


def exchanged_shares(
    models: Sequence[Model], *, alpha: float, beta: float, is_adaptive: bool, trim: bool
) -> Shift:
    """Move CPU from over-achieving to under-performing models, as the paper says."""
    shares = {model.job.id: model.share for model in models}
    n = max(1, len(models))
    floor = 1 / (2 * n)
    over = [model for model in models if model.job_class == OVER]
    under = [model for model in models if model.job_class == UNDER]
    if not under:
        if trim and over:
            _take(over, shares, beta, floor)
            return Shift(shares, "trimmed")
        return Shift(shares)
    if not over:
        # Ours: all suffer alike.
        mean = math.fsum(model.share for model in under) / len(under)
        for model in under:
            shares[model.job.id] += beta * (mean - model.share)
        return Shift(shares, "the targets are jointly out of reach: toward equal shares")
    pool = _take(over, shares, _grown(beta, under, alpha) if is_adaptive else beta, floor)
    need = math.fsum(-model.quality for model in under)
    for model in under:
        given = shares[model.job.id] + pool * -model.quality / need
        shares[model.job.id] = min(1.0, given)
    if pool <= 0:
        return Shift(shares, "over-achieving models have nothing left to give")
    return Shift(shares, f"{pool:.2%} of the host moves from {len(over)} to {len(under)}")


def _grown(beta: float, under: Sequence[Model], alpha: float) -> float:
    """Return beta, larger while the targets are missed by far (ours)."""
    error = math.fsum(-model.quality / model.target for model in under) / len(under)
    return min(1.0, beta * min(_MOST_GAIN, max(1.0, error / alpha)))


def _take(over: Sequence[Model], shares: dict[str, float], beta: float, floor: float) -> float:
    """Take beta L q/Q from each, which leaves it the floor; return the sum."""
    slack = math.fsum(model.quality for model in over)
    pool = 0.0
    for model in over:
        part = beta * model.share * model.quality / slack
        part = max(0.0, min(part, model.share - floor))
        shares[model.job.id] -= part
        pool += part
    return pool
