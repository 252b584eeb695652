"""Engine settings of a container: what they are, and whether two differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dltools.observations.schema import CPU_WEIGHT_STEP

SETTINGS = ("cpus", "cpu_weight", "cpuset", "memory")
"""Names of settings: cores (None: no quota), relative weight in Docker's shares (1024 is the
default), a list of CPUs (None: all), bytes (None: no limit). A container that takes turns has
`group`, the number of the group that runs together, from 0 in order of the turns, and `turn_s`, the
length of its turn in seconds; `queue`, where these are turns on GPUs, is the name of the queue."""

Settings = dict[str, Any]

SHORTEST_TURN = 0.1
"""Shortest turn, as a part of the mean one."""

LEAST_WEIGHT, MOST_WEIGHT = 2.0, 262144.0
"""Bounds of Docker's CPU shares."""


def differs(wanted: Mapping[str, Any], present: Mapping[str, Any], cpus: float) -> bool:
    """Tell whether settings differ by more than the engine's precision and read-back rounding.

    No quota and a quota of the host's `cpus` or more have the same effect; an unknown present
    setting differs from any.
    """
    for name, value in wanted.items():
        if name not in present:
            return True
        have = present[name]
        if name == "cpus":
            value, have = (cpus if v is None else min(v, cpus) for v in (value, have))
        if isinstance(value, int | float) and isinstance(have, int | float):
            is_near = abs(value - have) <= max(0.002, 0.01 * value)
            if not is_near and not (name == "cpu_weight" and _is_one_step(value, have)):
                return True
        elif value != have:
            return True
    return False


def _is_one_step(wanted: float, present: float) -> bool:
    """Tell whether a weight in force is the nearest that cgroup version 2 has to the one wanted.

    A weight in force that is not whole can only be of version 2.
    """
    if float(present).is_integer():
        return False
    return max(1, round(wanted / CPU_WEIGHT_STEP)) == round(present / CPU_WEIGHT_STEP)
