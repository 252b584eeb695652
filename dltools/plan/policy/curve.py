"""A fitted learning curve, and what it predicts. Ours.

The shapes that fit nearly as well as the best one vote: a prediction is their weighted median, and
what they disagree about is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any

from dltools.plan.policy.curve_shapes import SHAPES

_FLAT = 1e-3
"""Way, as a part of its level, under which a curve counts as flat."""


Voter = tuple[int, float, float, float]
"""A shape's number, a, b and weight: the shape says a + b shape(u)."""


@dataclass(frozen=True, slots=True)
class Asymptote:
    """The value that a curve tends to, and the least and the greatest that any voter has."""

    value: float
    least: float
    greatest: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A fitted curve.

    `first` and `last` are the work (CPU seconds) of the history's ends, `level` its newest median,
    `noise` the residual standard deviation on the grid; the first of `voters` fits best.
    """

    first: float
    last: float
    level: float
    noise: float
    voters: tuple[Voter, ...]
    _known: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def soon(self, work: float) -> float:
        """Return the value at a work not far ahead, by the shape that fits best.

        So near all shapes agree, and one is faster than a vote.
        """
        k, a, b, _ = self.voters[0]
        return a + b * SHAPES[k].at(self._position(work))

    def value_at(self, work: float) -> float:
        """Return the predicted value when the job has had this work (CPU seconds)."""
        u = self._position(work)
        return _median([(a + b * SHAPES[k].at(u), weight) for k, a, b, weight in self.voters])

    def work_to(self, target: float) -> float:
        """Return the work (CPU seconds) beyond the last point until the curve meets the target.

        0 where it is met already in the sense that the curve is past it; infinity where the
        curve ends short of the target or goes the other way.
        """
        if target not in self._known:
            self._known[target] = self._work_to(target)
        found: float = self._known[target]
        return found

    def _work_to(self, target: float) -> float:
        votes = []
        for k, a, b, weight in self.voters:
            u = None if b == 0 else SHAPES[k].where((target - a) / b)
            if u is None or u < 0:
                votes.append((math.inf, weight))
            else:
                votes.append((max(0.0, u - 1.0) * (self.last - self.first), weight))
        return _median(votes)

    def asymptote(self) -> Asymptote | None:
        """Return where the curve ends; None where the voters with most weight know no end."""
        if "end" not in self._known:
            self._known["end"] = self._asymptote()
        found: Asymptote | None = self._known["end"]
        return found

    def convergence(self, left: float) -> float:
        """Return the work (CPU seconds) beyond the last point until only this part of the curve's
        whole way is left; infinity where it has no end."""
        key = ("left", left)
        if key not in self._known:
            end = self.asymptote()
            way = 0.0 if end is None else self.value_at(self.first) - end.value
            self._known[key] = math.inf if end is None else self.work_to(end.value + left * way)
        found: float = self._known[key]
        return found

    @property
    def is_flat(self) -> bool:
        """Whether it has changed by less than a thousandth of its level."""
        if "flat" not in self._known:
            way = abs(self.value_at(self.first) - self.level)
            self._known["flat"] = way <= _FLAT * abs(self.level)
        found: bool = self._known["flat"]
        return found

    def _asymptote(self) -> Asymptote | None:
        ends = [(a, weight) for k, a, _, weight in self.voters if SHAPES[k].kind.has_asymptote]
        if sum(weight for _, weight in ends) < 0.5 * sum(voter[3] for voter in self.voters):
            return None
        values = [value for value, _ in ends]
        return Asymptote(_median(ends), min(values), max(values))

    def _position(self, work: float) -> float:
        return max(0.0, (work - self.first) / (self.last - self.first))

    def to_json(self) -> list[object]:
        """Return JSON values from which `from_json` restores the curve."""
        return [self.first, self.last, self.level, self.noise, [list(v) for v in self.voters]]


def from_json(data: Sequence[Any]) -> Curve:
    """Return the curve that was saved. Raises ValueError, TypeError, KeyError or IndexError."""
    first, last, level, noise, voters = data
    return Curve(
        float(first),
        float(last),
        float(level),
        float(noise),
        tuple((int(k) % len(SHAPES), float(a), float(b), float(w)) for k, a, b, w in voters),
    )


def _median(votes: list[tuple[float, float]]) -> float:
    """Return the weighted median of (value, weight)."""
    ordered = sorted(votes, key=itemgetter(0))
    sums = list(accumulate(weight for _, weight in ordered))
    half = sums[-1] / 2
    return next(value for (value, _), total in zip(ordered, sums, strict=True) if total >= half)
