"""Weights of CPU time in Docker's shares: default, bounds, and the steps of cgroup version 2.

Version 2 of cgroups has weights from 1 to 10,000 instead, and every cgroup begins with 100: so one
step there is 10.24 of Docker's shares.
"""

from __future__ import annotations

DEFAULT_CPU_WEIGHT = 1024.0
"""CPU weight of a container for which none was set."""

LEAST_WEIGHT, MOST_WEIGHT = 2.0, 262144.0
"""Bounds of Docker's shares."""

V2_STEP = DEFAULT_CPU_WEIGHT / 100
"""One step of version 2, which is its least weight too."""

LEAST_PRIORITY, MOST_PRIORITY = 0.01, 100.0
"""Bounds of a job's priority, by which its share among the jobs of its user is weighed."""


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
