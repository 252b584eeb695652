"""CPU weights in Docker's shares, from the fields of the engine and on the kernel's two scales.

Version 1 of cgroups counts as Docker does: 1024 is the default. Version 2 has a scale of its own,
from 1 to 10000, on which 100 is the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dltools.observations.schema import DEFAULT_CPU_WEIGHT

_V2_DEFAULT = 100
_V2_LARGEST = 10_000
_V2_OF_DEFAULT = 39
"""What the first formula of runc makes of the default of version 1."""


def configured_weight(host_config: Mapping[str, Any]) -> float:
    """Return the weight that an inspected container's fields set."""
    return float(host_config.get("CpuShares") or DEFAULT_CPU_WEIGHT)


def weight_from_v2(steps: int) -> float:
    """Return a weight of version 2 in Docker's shares."""
    return steps * DEFAULT_CPU_WEIGHT / _V2_DEFAULT


def weight_to_v2(weight: float) -> int:
    """Return the nearest weight of version 2."""
    return min(_V2_LARGEST, max(1, round(weight * _V2_DEFAULT / DEFAULT_CPU_WEIGHT)))


def asked_weight(shares: int | None, in_force: float, *, is_v2: bool) -> float:
    """Return the weight that was asked for, given the one in force and the engine's record (None or
    0: none).

    What an engine makes of shares on version 2 is not in proportion to them: there the record
    counts, where it agrees with what is in force.
    """
    if not is_v2:
        return in_force
    steps = weight_to_v2(in_force)
    if shares and steps in _steps_of(shares):
        return float(shares)
    return DEFAULT_CPU_WEIGHT if steps in (_V2_OF_DEFAULT, _V2_DEFAULT) else in_force


def _steps_of(shares: int) -> tuple[int, int]:
    """Return the weights of version 2 that runc gives for Docker's shares: by its first formula,
    and by that of 1.3.2."""
    shares = min(262_144, max(2, shares))
    level = math.log2(shares)
    quadratic = math.ceil(10 ** ((level**2 + 125 * level) / 612 - 7 / 34) - 1e-9)
    return 1 + (shares - 2) * 9999 // 262_142, quadratic
