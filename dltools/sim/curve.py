"""What a simulated job reports: the value of its metric after a share of its work."""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

KINDS = ("exponential", "power", "linear", "points")


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """A metric from `start` (nothing learned) towards `end`, over the share u of the work done.

    `exponential` end + (start - end) exp(-rate u); `power` end + (start - end) (1 + rate u)^-1;
    `linear` straight from start to end; `points` straight lines between `table`, pairs of
    (share of the work, value). `noise` is a standard deviation, as a fraction of |start - end|. It
    is drawn from the job's name and the point's number: the same run has the same noise.
    """

    metric: str = "loss"
    kind: str = "exponential"
    start: float = 2.3
    end: float = 0.1
    rate: float = 5.0
    noise: float = 0.0
    table: tuple[tuple[float, float], ...] = ()

    @property
    def falls(self) -> bool:
        """Whether its metric gets smaller as the job learns."""
        return self.value(1.0) <= self.value(0.0)

    def value(self, share: float) -> float:
        """Return the value without noise after a share of the work."""
        if self.kind == "points":
            return _between(self.table, share)
        if self.kind == "linear":
            left = 1 - min(1.0, share)
        elif self.kind == "power":
            left = 1 / (1 + self.rate * share)
        else:
            left = math.exp(-self.rate * share)
        return self.end + (self.start - self.end) * left

    def reported(self, share: float, name: str, number: int) -> float:
        """Return the value with noise that the job prints as its point of this number."""
        value = self.value(share)
        if self.noise == 0:
            return value
        return value + self.noise * abs(self.start - self.end) * _normal(name, number)


def _between(table: Sequence[tuple[float, float]], share: float) -> float:
    at = bisect.bisect_right(table, (share, math.inf))
    if at == 0:
        return table[0][1]
    if at == len(table):
        return table[-1][1]
    (u0, v0), (u1, v1) = table[at - 1], table[at]
    return v0 + (v1 - v0) * (share - u0) / (u1 - u0) if u1 > u0 else v1


def _normal(name: str, number: int) -> float:
    """Return a standard normal number that is always the same for a name and a number."""
    digest = hashlib.blake2b(f"{name} {number}".encode(), digest_size=16).digest()
    one = (int.from_bytes(digest[:8], "big") + 1) / (2**64 + 1)
    two = int.from_bytes(digest[8:], "big") / 2**64
    return math.sqrt(-2 * math.log(one)) * math.cos(2 * math.pi * two)
