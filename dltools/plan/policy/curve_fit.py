"""Robust fits of saturating curves to what a job has reported. Ours.

The first fifth of a history is left out: it falls faster than any of the shapes. The rest is
reduced to the medians of up to 24 blocks, on which noise, spikes and NaN have little hold, and laid
on a fixed grid from its first to its last point. On the grid each shape has a closed least-squares
fit a + b shape(u), by one dot product with a basis that is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import mul

from dltools.plan.policy.curve import Curve, Voter
from dltools.plan.policy.curve_shapes import KNOTS, SHAPES

FEWEST = 5
"""Finite points that a fit takes."""

WARM_UP = 0.2
"""Part of a history, at its beginning, that no fit looks at."""

_LARGEST = 1e150  # whose square is still a number
_VOTERS = 8
_SHARPNESS = 5.0
"""How fast a shape loses its vote with its squared error."""


def fit(works: Sequence[float], values: Sequence[float]) -> Curve | None:
    """Fit a history: the work (CPU seconds, not falling) and value of each point.

    Values that are not finite are passed over. None where there are too few points or no work lies
    between them: then nothing is known.
    """
    points = _usable(works, values)
    if len(points) < FEWEST:
        return None
    points = points[min(int(len(points) * WARM_UP), len(points) - FEWEST) :]
    knots = _blocks(points)
    first, last = knots[0][0], knots[-1][0]
    if not last - first > 1e-9 * max(1.0, abs(last)):
        return None
    levels = _laid(knots)
    fits = _fits(levels)
    best = min(one.error for one in fits)
    return Curve(
        first, last, levels[-1], math.sqrt(best / (KNOTS - 3)), _voters(fits, best, levels)
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    """A shape's least-squares fit: its number, its factor, the sum of squared residuals."""

    shape: int
    factor: float
    error: float


def _fits(levels: Sequence[float]) -> list[_Fit]:
    mean = math.fsum(levels) / KNOTS
    centred = [level - mean for level in levels]
    total = math.fsum(map(mul, centred, centred))
    floor = max(total * 1e-6, 1e-300)
    found = []
    for number, shape in enumerate(SHAPES):
        factor = sum(map(mul, shape.basis, centred))
        found.append(_Fit(number, factor, max(floor, total - factor * factor)))
    return found


def _voters(fits: Iterable[_Fit], best: float, levels: Sequence[float]) -> tuple[Voter, ...]:
    """Return the shapes with the largest weights, the largest first."""
    weighed = sorted(
        (
            (SHAPES[one.shape].prior * (best / one.error) ** _SHARPNESS, one.shape, one.factor)
            for one in fits
        ),
        reverse=True,
    )
    mean = math.fsum(levels) / KNOTS
    voters = []
    for weight, number, factor in weighed[:_VOTERS]:
        slope = factor / SHAPES[number].norm
        voters.append((number, mean - slope * SHAPES[number].mean, slope, weight))
    return tuple(voters)


def _usable(works: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the (work, value) that are finite and whose squares are."""
    points = list(zip(works, values, strict=True))
    if not (all(map(math.isfinite, values)) and all(map(math.isfinite, works))):
        points = [(w, v) for w, v in points if math.isfinite(w) and math.isfinite(v)]
    if any(abs(v) > _LARGEST for _, v in points):
        points = [(w, v) for w, v in points if abs(v) <= _LARGEST]
    return points


def _blocks(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return up to 24 (mean work, median value) of blocks of points of equal number."""
    n = len(points)
    if n <= KNOTS:
        size = 3 if n >= 9 else 1  # few points: running medians of three still tame a spike
        if size == 1:
            return points
        inner = [
            (points[i][0], sorted((points[i - 1][1], points[i][1], points[i + 1][1]))[1])
            for i in range(1, n - 1)
        ]
        return [points[0], *inner, points[-1]]
    borders = [round(j * n / KNOTS) for j in range(KNOTS + 1)]
    blocks = []
    for low, high in pairwise(borders):
        block = points[low:high]
        ordered = sorted([v for _, v in block])
        middle = len(ordered) // 2
        median = (ordered[middle] + ordered[(len(ordered) - 1) // 2]) / 2
        blocks.append((math.fsum([w for w, _ in block]) / len(block), median))
    return blocks


def _laid(knots: list[tuple[float, float]]) -> list[float]:
    """Return the values on the grid, by straight lines between the knots."""
    first, last = knots[0][0], knots[-1][0]
    step = (last - first) / (KNOTS - 1)
    levels, at = [], 0
    for j in range(KNOTS - 1):
        work = first + j * step
        while at < len(knots) - 2 and knots[at + 1][0] <= work:
            at += 1
        (w0, v0), (w1, v1) = knots[at], knots[at + 1]
        part = (work - w0) / (w1 - w0) if w1 > w0 else 1.0
        levels.append(v0 + (v1 - v0) * part)
    levels.append(knots[-1][1])
    return levels
