"""What trainings that hold one GPU keep of their speed there.

Measured: 330 pairs of trainings on a V100 that fit its memory together (636 entries of the table
of throughputs of Gavel, Narayanan et al., OSDI 2020, which has most pairs twice). Each one's rate
counts against its rate alone. The sum of both is 1.37 in the median, from 0.35 to 2; the slower one
has 0.43 of it in the median, from 0.17 to 0.5. Here a pair's sum and the slower one's part are
drawn from these two distributions, each by itself (in the table they correlate by 0.44), and always
alike for the same two jobs. Of three and more on a GPU each other one costs its factor (ours).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

_SUMS = (0.35, 0.68, 0.91, 1.21, 1.28, 1.37, 1.43, 1.53, 1.65, 1.81, 2.0)
_PARTS = (0.17, 0.30, 0.35, 0.38, 0.41, 0.43, 0.45, 0.46, 0.48, 0.5, 0.5)
"""Deciles, from the least to the most, of the pairs' sums and of the slower one's part."""


def kept(name: str, others: Iterable[str]) -> float:
    """Return the part of its speed alone that a job keeps on a GPU that these others use too."""
    return math.prod(_of_pair(name, other) for other in others)


def _of_pair(one: str, other: str) -> float:
    """Return the first one's rate beside the other, against its rate alone."""
    first, second = sorted((one, other))
    digest = hashlib.blake2b(f"{first}\0{second}".encode(), digest_size=9).digest()
    total = _drawn(_SUMS, digest[:4])
    part = _drawn(_PARTS, digest[4:8])
    is_slower = (digest[8] % 2 == 0) == (one == first)
    return min(1.0, total * (part if is_slower else 1 - part))


def _drawn(deciles: Sequence[float], chance: bytes) -> float:
    """Return a value of a distribution with these deciles."""
    at = int.from_bytes(chance, "big") / 2**32 * (len(deciles) - 1)
    low = int(at)
    return deciles[low] + (at - low) * (deciles[low + 1] - deciles[low])
