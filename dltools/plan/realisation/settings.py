"""Engine settings of a container: what they are, and whether two differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dltools.notation.cpu_weights import is_step_of_v2

SETTINGS = ("cpus", "cpu_weight", "cpuset", "memory")
"""Names of settings: cores (None: no quota), relative weight in Docker's shares (1024 is the
default), a list of CPUs (None: all), bytes (None: no limit). A container that takes turns has
`group`, the number of the group that runs together, from 0 in order of the turns, and `turn_s`, the
length of its turn in seconds; `queue`, where these are turns on GPUs, is the name of the queue."""

Settings = dict[str, Any]

SHORTEST_TURN = 0.1
"""Shortest turn, as a part of the mean one."""

LEAST_CPUS = 0.01
"""Smallest quota in cores: the kernel's least quota of 1 ms in a period of 100 ms."""


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
            if not is_near and not (name == "cpu_weight" and is_step_of_v2(value, have)):
                return True
        elif value != have:
            return True
    return False
