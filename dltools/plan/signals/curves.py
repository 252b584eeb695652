"""Learning curves: a robust fit to what a job has reported, and what the curve predicts. Ours.

`remaining_effort` fits a job's curve and asks it; `metric_series` keeps it beside its points.

A fit leaves out the first fifth of a history, which falls faster than any of the shapes. The rest
is reduced to the medians of up to 24 blocks, which noise, spikes and NaN change little, and
interpolated on a fixed grid from its first to its last point. On the grid each shape has a closed
least-squares fit a + b shape(u): one dot product with a basis that is computed once. The shapes
that fit nearly as well as the best one vote: a prediction is their weighted median, and their
spread shows how uncertain it is.

The shapes, for u from 0 to 1:

    exponential   exp(-c u)
    power law     (1 + u / d)^-p
    logarithm     log(1 + u / d)     no asymptote
    line          u                  no asymptote

The families are those of SLAQ (Zhang et al., SoCC 2017) and Optimus (Peng et al., EuroSys 2018).
The priors favour slow tails over quick ends, as in real curves (tests/bench/curves.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import accumulate, pairwise
from operator import itemgetter, mul

from dltools.plan.signals.effort import value_at

FEWEST = 5
"""Least number of finite points for a fit."""

WARM_UP = 0.2
"""Part of a history, at its beginning, that no fit looks at."""

_LARGEST = 1e150  # whose square is still a number
_VOTERS = 8
_SHARPNESS = 5.0
"""How fast a shape loses its vote with its squared error."""


def fit(works: Sequence[float], values: Sequence[float]) -> Curve | None:
    """Fit a history: the work (CPU seconds, not falling) and value of each point.

    Values that are not finite are skipped. None if there are too few points, or no work between
    them.
    """
    points = _usable(works, values)
    if len(points) < FEWEST:
        return None
    points = points[min(int(len(points) * WARM_UP), len(points) - FEWEST) :]
    knots = _blocks(points)
    first, last = knots[0][0], knots[-1][0]
    if not last - first > 1e-9 * max(1.0, abs(last)):
        return None
    step = (last - first) / (KNOTS - 1)
    return _fitted(first, last, [value_at(knots, first + j * step) for j in range(KNOTS)])


def _fitted(first: float, last: float, levels: Sequence[float]) -> Curve:
    """Return the curve through levels on the grid: the shapes with the largest weights vote."""
    mean = math.fsum(levels) / KNOTS
    centred = [level - mean for level in levels]
    total = math.fsum(map(mul, centred, centred))
    floor = max(total * 1e-6, 1e-300)
    factors = [sum(map(mul, shape.basis, centred)) for shape in SHAPES]
    errors = [max(floor, total - factor * factor) for factor in factors]
    best = min(errors)
    fits = zip(SHAPES, errors, strict=True)
    weights = [shape.prior * (best / error) ** _SHARPNESS for shape, error in fits]
    heaviest = sorted(range(len(SHAPES)), key=lambda at: (weights[at], at), reverse=True)
    slopes = {at: factors[at] / SHAPES[at].norm for at in heaviest[:_VOTERS]}
    voters = (
        (at, mean - slope * SHAPES[at].mean, slope, weights[at]) for at, slope in slopes.items()
    )
    return Curve(first, last, levels[-1], tuple(voters))


def _usable(works: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the (work, value) pairs that are finite, as are their squares."""
    points = zip(works, values, strict=True)
    return [(w, v) for w, v in points if math.isfinite(w) and abs(v) <= _LARGEST]


def _blocks(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return up to 24 (mean work, median value) of blocks of points of equal number."""
    n = len(points)
    if n < 9:  # too few for running medians of three, which tame a spike
        return points
    if n <= KNOTS:
        triples = zip(points, points[1:], points[2:], strict=False)
        inner = [(at[0], sorted((a[1], at[1], b[1]))[1]) for a, at, b in triples]
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


_CONVERGED = 0.02
"""A curve counts as converged when this part of its whole change is left (ours)."""

_FLAT = 1e-3
"""A curve whose whole change is less than this part of its level counts as flat."""


Voter = tuple[int, float, float, float]
"""A shape's number, a, b and weight: the shape says a + b shape(u)."""


@dataclass(frozen=True)
class Curve:
    """A fitted curve.

    `first` and `last` are the work (CPU seconds) of the history's ends, `level` its newest median;
    the first of `voters` fits best.
    """

    first: float
    last: float
    level: float
    voters: tuple[Voter, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for a shape that is not known."""
        if not all(0 <= number < len(SHAPES) for number, *_ in self.voters):
            raise ValueError("a curve of an unknown shape")

    def soon(self, work: float) -> float:
        """Return the value at a work not far ahead, by the shape that fits best.

        This is faster than a vote, and all shapes agree so near to the last point.
        """
        k, a, b, _ = self.voters[0]
        return a + b * SHAPES[k].at(self._position(work))

    def value_at(self, work: float) -> float:
        """Return the predicted value when the job has had this work (CPU seconds)."""
        u = self._position(work)
        return _median([(a + b * SHAPES[k].at(u), weight) for k, a, b, weight in self.voters])

    def work_to(self, target: float) -> float:
        """Return the work (CPU seconds) beyond the last point until the curve meets the target.

        0 if the curve is past the target already; infinity if it ends short of the target or moves
        away from it.
        """
        votes = []
        for k, a, b, weight in self.voters:
            u = SHAPES[k].where((target - a) / b) if b else math.inf
            left = math.inf if u < 0 else max(0.0, u - 1.0) * (self.last - self.first)
            votes.append((left, weight))
        return _median(votes)

    @cached_property
    def end(self) -> float | None:
        """The value that the curve tends to; None if most of the vote has no asymptote."""
        ends = [(a, weight) for k, a, _, weight in self.voters if SHAPES[k].kind in _WITH_ASYMPTOTE]
        if sum(weight for _, weight in ends) < 0.5 * sum(voter[3] for voter in self.voters):
            return None
        return _median(ends)

    @cached_property
    def to_convergence(self) -> float:
        """The work (CPU seconds) beyond the last point until 2 % of the curve's whole change is
        left; infinity if it has no asymptote."""
        if self.end is None:
            return math.inf
        return self.work_to(self.end + _CONVERGED * (self.value_at(self.first) - self.end))

    @cached_property
    def is_flat(self) -> bool:
        """Whether it has changed by less than a thousandth of its level."""
        return abs(self.value_at(self.first) - self.level) <= _FLAT * abs(self.level)

    def _position(self, work: float) -> float:
        return max(0.0, (work - self.first) / (self.last - self.first))


def _median(votes: list[tuple[float, float]]) -> float:
    """Return the weighted median of (value, weight)."""
    ordered = sorted(votes, key=itemgetter(0))
    sums = list(accumulate(weight for _, weight in ordered))
    half = sums[-1] / 2
    return next(value for (value, _), total in zip(ordered, sums, strict=True) if total >= half)


KNOTS = 24


class Family(IntEnum):
    """A family of shapes."""

    LINE = 0
    LOG = 1
    EXP = 2
    POWER = 3


_WITH_ASYMPTOTE = (Family.EXP, Family.POWER)
"""Families whose shapes tend to a value."""


@dataclass(slots=True)
class Shape:
    """A family's shape with the rate c of an exponential, or p of a power law, and the offset d;
    `prior`: how likely it is before any point is seen. Its `basis` on the grid is centred and of
    length 1; `mean` and `norm` undo that."""

    kind: Family
    rate: float
    offset: float
    prior: float
    mean: float = field(init=False)
    norm: float = field(init=False)
    basis: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Compute the basis."""
        values = [self.at(j / (KNOTS - 1)) for j in range(KNOTS)]
        self.mean = math.fsum(values) / KNOTS
        self.norm = math.sqrt(math.fsum((v - self.mean) ** 2 for v in values))
        self.basis = tuple((v - self.mean) / self.norm for v in values)

    def at(self, u: float) -> float:
        """Return the shape's value at u."""
        if self.kind is Family.LINE:
            return u
        if self.kind is Family.LOG:
            return math.log1p(u / self.offset)
        if self.kind is Family.EXP:
            return math.exp(-self.rate * u)
        return float((1 + u / self.offset) ** -self.rate)

    def where(self, level: float) -> float:
        """Return the u at which the shape has this value, infinity where it never does."""
        if self.kind is Family.LINE:
            return level
        if self.kind in _WITH_ASYMPTOTE:
            level = -math.log(level) / self.rate if level > 0 else math.inf
        if self.kind is Family.EXP:
            return level
        return self.offset * math.expm1(level) if level < 50 else math.inf


_EXPONENTS = (0.5, 0.75, 1.0, 1.3, 1.7, 2.2, 2.8, 3.6, 4.6, 6.0, 8.0, 11.0, 15.0, 20.0)
_OFFSETS = (0.01, 0.03, 0.1, 0.3, 1.0)

SHAPES = (
    Shape(Family.LINE, 0.0, 1.0, 0.1),
    *(Shape(Family.LOG, 0.0, d, 2.0) for d in (0.01, 0.05, 0.2, 1.0)),
    *(Shape(Family.EXP, c, 1.0, 0.02) for c in _EXPONENTS),
    *(Shape(Family.POWER, p, d, 1.0) for p in (0.25, 0.5) for d in _OFFSETS),
    *(Shape(Family.POWER, p, d, 0.05) for p in (1.0, 2.0) for d in _OFFSETS),
)
