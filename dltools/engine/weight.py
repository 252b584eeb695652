"""CPU weights in Docker's shares, from the fields of the engine and on the kernel's two scales.

Version 1 of cgroups counts as Docker does: 1024 is the default. Version 2 has a scale of its own,
from 1 to 10000, on which 100 is the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dltools.observations.schema import DEFAULT_CPU_WEIGHT

_V2_DEFAULT = 100
_V2_LARGEST = 10_000


def configured_weight(host_config: Mapping[str, Any]) -> float:
    """Return the weight that an inspected container's fields set."""
    return float(host_config.get("CpuShares") or DEFAULT_CPU_WEIGHT)


def weight_from_v2(steps: int) -> float:
    """Return a weight of version 2 in Docker's shares."""
    return steps * DEFAULT_CPU_WEIGHT / _V2_DEFAULT


def weight_to_v2(weight: float) -> int:
    """Return the nearest weight of version 2."""
    return min(_V2_LARGEST, max(1, round(weight * _V2_DEFAULT / DEFAULT_CPU_WEIGHT)))
