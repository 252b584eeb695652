"""Settings that cannot be set, found before anything is sent to the engine.

An engine records a value first and hands it to the kernel then: what the kernel refuses stays on
the engine's record, and there it fails every later change.
"""

from __future__ import annotations

import math
from typing import Any

from dltools.apply import threads
from dltools.apply.engine_fields import LEAST_CPUS, LEAST_SHARES, MOST_SHARES
from dltools.apply.located import LocatedContainer
from dltools.notation.resources import parse_cpus
from dltools.plan.realisation.settings import Settings


def out_of_bounds(wanted: Settings) -> str | None:
    """Return why the kernel cannot enforce a quota or a weight, None if it can."""
    cpus, weight = wanted.get("cpus"), wanted.get("cpu_weight", LEAST_SHARES)
    if cpus is not None and not (_is_number(cpus) and cpus >= LEAST_CPUS):
        return f"cpus {cpus!r} is not a number of at least {LEAST_CPUS:g} cores"
    if not (_is_number(weight) and _is_weight(weight)):
        return f"cpu_weight {weight!r} is not a whole number from {LEAST_SHARES} to {MOST_SHARES}"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_weight(value: float) -> bool:
    return value == int(value) and LEAST_SHARES <= value <= MOST_SHARES


def unfit_cpu_list(located: LocatedContainer, wanted: Settings, present: Settings) -> str | None:
    """Return why a CPU list cannot be set, None if it can: it is malformed, has CPUs that are
    not there, or fewer CPUs than the container has busy threads."""
    text = wanted.get("cpuset")
    if not text:
        return None
    cpus = set(parse_cpus(text) if isinstance(text, str) else [])
    if not cpus:
        return f"cpuset {text!r} is not a list of CPUs such as 0-3,6"
    usable = located.usable_cpu_list
    if not cpus <= set(parse_cpus(usable)):
        return f"cpuset {text}: containers can use only CPUs {usable} here"
    if set(parse_cpus(present.get("cpuset") or usable)) <= cpus:
        return None  # it loses no CPU
    busy = threads.count_busy(located.cgroup) if located.cgroup else None
    if busy is None:
        return "its threads are not visible here: fewer CPUs than busy threads would stall it"
    if busy > len(cpus):
        return f"it has {busy} busy threads: {len(cpus)} CPUs would stall it"
    return None
