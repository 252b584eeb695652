"""What cannot be set, known before anything is sent.

An engine takes a value into its record first and hands it to the kernel then: what the kernel
refuses stays in the record, and there it fails every later change.
"""

from __future__ import annotations

import math
from typing import Any

from dltools.apply import threads
from dltools.apply.limits import LEAST_CPUS, LEAST_SHARES, MOST_SHARES, Place
from dltools.notation.cpu_lists import parse_cpus
from dltools.plan.realisation.settings import Settings


def out_of_bounds(wanted: Settings) -> str | None:
    """Return what is wrong with settings that neither the engine nor the kernel can bring about,
    None where nothing is."""
    cpus, weight = wanted.get("cpus"), wanted.get("cpu_weight", LEAST_SHARES)
    if cpus is not None and not (_is_number(cpus) and cpus >= LEAST_CPUS):
        return f"cpus {cpus!r}: the least quota that the kernel takes is {LEAST_CPUS:g} CPUs"
    if not (_is_number(weight) and weight == int(weight) and
            LEAST_SHARES <= weight <= MOST_SHARES):  # fmt: skip
        return (f"cpu_weight {weight!r}: a weight is a whole number "
                f"from {LEAST_SHARES} to {MOST_SHARES}")  # fmt: skip
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def unfit_cpuset(place: Place, wanted: Settings, present: Settings) -> str | None:
    """Return why a CPU list cannot be set: it is none, it has fewer CPUs than the container busy
    threads, or CPUs that are not there."""
    text = wanted.get("cpuset")
    if not text:
        return None
    cpus = parse_cpus(text) if isinstance(text, str) else []
    if not cpus:
        return f"not a list of CPUs: {text}"
    every = parse_cpus(place.cpuset)
    if not set(cpus) <= set(every):
        return f"CPUs {text}: containers here can have {place.cpuset}"
    if set(parse_cpus(present.get("cpuset") or place.cpuset)) <= set(cpus):
        return None  # it only grows
    busy = threads.busy(place.cgroup) if place.cgroup else None
    if busy is None:
        return "its threads are out of sight, and fewer CPUs than busy threads make it collapse"
    if busy > len(cpus):
        return f"it has {busy} busy threads: on {len(cpus)} CPUs it would collapse"
    return None
