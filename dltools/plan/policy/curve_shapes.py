"""Shapes of learning curves, each on a fixed grid of `KNOTS` points from 0 to 1.

    exponential   exp(-c u)
    power law     (1 + u / d)^-p
    logarithm     log(1 + u / d)     no asymptote
    line          u                  no asymptote

The families are those of SLAQ (Zhang et al., SoCC 2017) and Optimus (Peng et al., EuroSys 2018).
Slow tails are likelier beforehand than quick ends, as real curves have it (tests/bench/curves.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

KNOTS = 24


class Kind(IntEnum):
    """A family of shapes."""

    LINE = 0
    LOG = 1
    EXP = 2
    POWER = 3

    @property
    def has_asymptote(self) -> bool:
        """Whether the shapes tend to a value."""
        return self in (Kind.EXP, Kind.POWER)


@dataclass(frozen=True, slots=True)
class Shape:
    """A basis on the grid, centred and of length 1; `mean` and `norm` undo that."""

    kind: Kind
    rate: float  # c of an exponential, p of a power law
    offset: float  # d
    prior: float  # how likely it is before any point is seen
    mean: float
    norm: float
    basis: tuple[float, ...]

    def at(self, u: float) -> float:
        """Return the shape's value at u."""
        return _raw(self.kind, self.rate, self.offset, u)

    def where(self, level: float) -> float | None:
        """Return the u at which the shape has this value, None where it never does."""
        if self.kind is Kind.LINE:
            return level
        if self.kind is Kind.LOG:
            return self.offset * math.expm1(level) if level < 50 else None
        if level <= 0:
            return None
        if self.kind is Kind.EXP:
            return -math.log(level) / self.rate
        exponent = -math.log(level) / self.rate
        return self.offset * math.expm1(exponent) if exponent < 50 else None


def _raw(kind: Kind, rate: float, offset: float, u: float) -> float:
    if kind is Kind.LINE:
        return u
    if kind is Kind.LOG:
        return math.log1p(u / offset)
    return math.exp(-rate * u) if kind is Kind.EXP else (1 + u / offset) ** -rate


def _shape(kind: Kind, rate: float, offset: float, prior: float) -> Shape:
    values = [_raw(kind, rate, offset, j / (KNOTS - 1)) for j in range(KNOTS)]
    mean = math.fsum(values) / KNOTS
    norm = math.sqrt(math.fsum((v - mean) ** 2 for v in values))
    return Shape(kind, rate, offset, prior, mean, norm, tuple((v - mean) / norm for v in values))


_EXPONENTS = (0.5, 0.75, 1.0, 1.3, 1.7, 2.2, 2.8, 3.6, 4.6, 6.0, 8.0, 11.0, 15.0, 20.0)
_OFFSETS = (0.01, 0.03, 0.1, 0.3, 1.0)

SHAPES = (
    _shape(Kind.LINE, 0.0, 1.0, 0.1),
    *(_shape(Kind.LOG, 0.0, d, 2.0) for d in (0.01, 0.05, 0.2, 1.0)),
    *(_shape(Kind.EXP, c, 1.0, 0.02) for c in _EXPONENTS),
    *(_shape(Kind.POWER, p, d, 1.0) for p in (0.25, 0.5) for d in _OFFSETS),
    *(_shape(Kind.POWER, p, d, 0.05) for p in (1.0, 2.0) for d in _OFFSETS),
)
