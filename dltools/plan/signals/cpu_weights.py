"""Weights of CPU time: their bounds, and what version 2 of cgroups makes of them.

Plans count in Docker's CPU shares, of which every container begins with `DEFAULT_CPU_WEIGHT`.
Version 2 has weights from 1 to 10,000 instead, and every cgroup begins with 100: so one step there
is 10.24 of Docker's.
"""

from __future__ import annotations

from dltools.observations.schema import DEFAULT_CPU_WEIGHT

LEAST_WEIGHT, MOST_WEIGHT = 2.0, 262144.0
"""Bounds of Docker's CPU shares."""

V2_STEP = DEFAULT_CPU_WEIGHT / 100
"""One step of version 2, which is its least weight too."""

WAITING_WEIGHT = V2_STEP
"""A container of this weight or less may be idle because it waits: the second level of `priority`
is 10 in version 1 of cgroups, and reads as the least weight in version 2."""


def whole_weight(weight: float, least: float = LEAST_WEIGHT, most: float = MOST_WEIGHT) -> float:
    """Return the nearest whole weight within bounds."""
    return float(round(min(most, max(least, weight))))


def is_step_of_v2(wanted: float, present: float) -> bool:
    """Tell whether a weight in force is the nearest that version 2 has to the one wanted.

    A weight in force that is not whole can only be of version 2.
    """
    if float(present).is_integer():
        return False
    return max(1, round(wanted / V2_STEP)) == round(present / V2_STEP)
