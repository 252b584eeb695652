"""The scales of CPU quotas and weights: ours, in which plans count, and the kernel's.

A quota is in cores here, and microseconds of each period there. A weight is in Docker's shares
here: 1024 is the default. Version 1 of cgroups counts so, too; version 2 has a scale of its own,
from 1 to 10000, on which 100 is the default.
"""

from __future__ import annotations

import math
import re

from dltools.notation.limits import DEFAULT_WEIGHT, LEAST_WEIGHT, MOST_WEIGHT, V2_STEP

PERIOD_US = 100_000
"""The kernel's default CPU period, in microseconds."""

LEAST_QUOTA_US = 1000
"""The kernel's smallest quota, `LEAST_CPUS` in a default period."""

LEAST_SHARES, MOST_SHARES = int(LEAST_WEIGHT), int(MOST_WEIGHT)
"""Bounds of Docker's shares, which are whole numbers."""

_V2_DEFAULT = 100
_V2_LARGEST = 10_000
_V2_OF_DEFAULT = 39
"""What the first formula of runc makes of the default of version 1."""

_QUADRATIC_SINCE = (1, 3, 2)
"""The first version of runc with its second formula."""


def quota_in_cores(quota_us: int | None, period_us: int | None) -> float | None:
    """Return a quota in cores; None for no quota (0, -1 or missing). A period of 0 or None is the
    default."""
    if not quota_us or quota_us < 0:
        return None
    return quota_us / (period_us or PERIOD_US)


def quota_in_us(cores: float, period_us: int) -> int:
    """Return a quota in microseconds of a period, at least the smallest that the kernel takes."""
    return max(LEAST_QUOTA_US, round(cores * period_us))


def weight_from_v2(steps: int) -> float:
    """Return a weight of version 2 in Docker's shares."""
    return round(steps * V2_STEP, 2)  # not 2611.2000000000003


def weight_to_v2(weight: float) -> int:
    """Return the nearest weight of version 2."""
    return min(_V2_LARGEST, max(1, round(weight / V2_STEP)))


def asked_weight(shares: float | None, in_force: float, *, is_v2: bool) -> float:
    """Return the weight that was asked for, given the one in force and the engine's record (None or
    0: none).

    What an engine makes of shares on version 2 is not in proportion to them: there the record
    counts, where it agrees with what is in force. But for the default in force: it is what has no
    record, also where an undo could only record shares that give it.
    """
    if not is_v2:
        return in_force
    steps = weight_to_v2(in_force)
    if steps == _V2_DEFAULT:
        return DEFAULT_WEIGHT
    if shares and steps in _steps_of(int(shares)):
        return float(shares)
    return DEFAULT_WEIGHT if steps == _V2_OF_DEFAULT else in_force


def default_shares(cgroup_version: str, runc: str) -> int:
    """Return the shares that have the effect of none, with a version of runc; of another runtime,
    those of runc's first formula."""
    if cgroup_version != "2":
        return int(DEFAULT_WEIGHT)
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", runc)
    is_quadratic = match is not None and tuple(map(int, match.groups())) >= _QUADRATIC_SINCE
    return (_quadratic_shares if is_quadratic else _linear_shares)(_V2_DEFAULT)


def shares_for(weight: float, cgroup_version: int) -> tuple[int, ...]:
    """Return the shares that may set a weight. Version 2 has a scale of its own, on which many
    shares are one weight, by runc's first formula or by that of 1.3.2: only reading back tells
    which are right."""
    if cgroup_version == 1:
        return (max(LEAST_SHARES, round(weight)),)
    steps = weight_to_v2(weight)
    return _linear_shares(steps), _quadratic_shares(steps)


def fitting_period(cores: float, period_us: int | None) -> int:
    """Return the period (us) for a quota: the given one, unless it is too short for so small a
    quota, or none."""
    period = period_us or PERIOD_US
    return period if cores * period >= LEAST_QUOTA_US else max(period, PERIOD_US)


def _steps_of(shares: int) -> tuple[int, int]:
    """Return the weights of version 2 that runc gives for shares: by its first formula, and by that
    of 1.3.2."""
    shares = min(MOST_SHARES, max(LEAST_SHARES, shares))
    level = math.log2(shares)
    quadratic = math.ceil(10 ** ((level**2 + 125 * level) / 612 - 7 / 34) - 1e-9)
    return 1 + (shares - 2) * 9999 // 262_142, quadratic


def _linear_shares(steps: int) -> int:
    """Invert runc's first formula: weight = 1 + (shares - 2) * 9999 / 262142, rounded down."""
    return 2 + math.ceil((steps - 1) * 262142 / 9999)


def _quadratic_shares(steps: int) -> int:
    """Invert runc's second formula (1.3.2): log10(weight) = (l^2 + 125 l) / 612 - 7/34, rounded
    up, with l = log2(shares)."""
    level = (-125 + math.sqrt(125**2 + 4 * 612 * (math.log10(steps) + 7 / 34))) / 2
    return min(MOST_SHARES, max(LEAST_SHARES, math.floor(2**level)))
