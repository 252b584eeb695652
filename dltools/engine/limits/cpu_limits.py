"""The CPU limits of a container: in force, on the engine's record, attainable, and possible.

Limits are compared by their effect, as the kernel's files report it: after a reset an engine may
show other values than at first, with the same effect.

What cannot be set is found before anything is sent to the engine: an engine records a value first
and hands it to the kernel then. What the kernel refuses stays on the engine's record, and there it
fails every later change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dltools.engine import cgroup, cpu_demand, host
from dltools.engine.interface import Container, Engine, Fields, LocatedContainer
from dltools.engine.kernel_scales import LEAST_SHARES, MOST_SHARES, weight_from_v2, weight_to_v2
from dltools.engine.parts import SetsLimits, needed
from dltools.notation.limits import LEAST_CPUS, WEIGHT, Limits, weight_of
from dltools.notation.resources import format_cpus, parse_cpus


class Locator:
    """Finds the cgroups of one engine's containers."""

    def __init__(self, engine: Engine) -> None:
        """Read where cgroups are mounted."""
        self._engine = engine
        self._mounts = cgroup.mounts()

    def locate_by_id(self, container_id: str) -> LocatedContainer:
        """Inspect a container and locate it. Raises `GoneError` or `RefusedError`."""
        return self.locate(self._engine.inspect(container_id))

    def locate(self, container: Container) -> LocatedContainer:
        """Find a container's cgroup, which exists while the container runs on this machine."""
        group = container.local_cgroup(self._mounts)
        every_cpu = format_cpus(range(max(1, self._engine.cpus)))
        if group is None:
            return LocatedContainer(container, None, float(self._engine.cpus), every_cpu)
        shared = host.shared_cgroups([group], self._mounts)
        usable = host.usable_cpus(shared) or float(self._engine.cpus)
        cpu_lists = (directory.cpuset() for directory in shared.cpuset)
        return LocatedContainer(
            container, group, usable, next((text for text in cpu_lists if text), every_cpu)
        )


def settings_in_force(located: LocatedContainer) -> Limits:
    """Return the settings in force: from the kernel's files, else from the engine's record."""
    directory = located.controller("cpu")
    if directory is None and (located.cgroup is None or not located.container.cgroup_path):
        return recorded_settings(located)
    settings: Limits = {}
    weight = directory.weight() if directory else None
    if directory is not None and (weight is not None or not located.container.cgroup_path):
        settings["cpus"] = _quota(directory.quota(), located)
    if weight is not None:
        settings["weight"] = weight
    if cpuset_directory := located.controller("cpuset"):
        cpu_list = cpuset_directory.cpuset()
        settings["cpuset"] = None if cpu_list in (None, located.usable_cpu_list) else cpu_list
    if located.cgroup is None or not located.cgroup.exists:  # it has ended while it was read
        return recorded_settings(located)
    return settings


def recorded_settings(located: LocatedContainer) -> Limits:
    """Return the limits on the engine's record: those that a restart of the container would bring
    about."""
    return _settings_of(located, located.container.recorded)


def settings_then(engine: Engine, located: LocatedContainer, limit_fields: Fields) -> Limits:
    """Return the limits that were on the engine's record when the journal took these fields."""
    return _settings_of(located, needed(engine, SetsLimits).recorded(limit_fields))


def _settings_of(located: LocatedContainer, recorded: Limits) -> Limits:
    cpu_list = format_cpus(parse_cpus(recorded.get("cpuset") or ""))
    return {
        "cpus": _quota(recorded.get("cpus"), located),
        "weight": weight_of(recorded),
        "cpuset": None if cpu_list in ("", located.usable_cpu_list) else cpu_list,
    }


def current_settings(engine: Engine, located: LocatedContainer) -> Limits:
    """Return the settings in force now: from the kernel's files, else from a new inspection.

    Raises `GoneError` or `RefusedError`.
    """
    if located.cgroup is not None and located.cgroup.exists:
        return settings_in_force(located)
    container = engine.inspect(located.container.id)
    return settings_in_force(replace(located, container=container, cgroup=None))


def attainable_settings(located: LocatedContainer, settings: Mapping[str, Any]) -> Limits:
    """Return settings as the kernel can hold them: no quota instead of one of all CPUs or more,
    and on cgroup version 2 the nearest weight of its own scale."""
    limits: Limits = {}
    if "cpus" in settings:
        limits["cpus"] = _quota(settings["cpus"], located)
    if "weight" in settings:
        weight, is_v2 = settings["weight"], located.cgroup_version == 2
        limits["weight"] = weight_from_v2(weight_to_v2(weight)) if is_v2 else weight
    if "cpuset" in settings:
        limits["cpuset"] = settings["cpuset"]
    return limits


def _quota(cores: float | None, located: LocatedContainer) -> float | None:
    """Return a quota in cores, None for no quota and for one of all CPUs or more."""
    return None if cores is None or cores >= located.usable_cpus else cores


def out_of_bounds(settings: Mapping[str, Any]) -> str | None:
    """Return why the kernel cannot enforce a quota or a weight, None if it can."""
    cpus, weight = settings.get("cpus"), settings.get("weight", LEAST_SHARES)
    if cpus is not None and not (_is_number(cpus) and cpus >= LEAST_CPUS):
        return f"cpus {cpus!r} is not a number of at least {LEAST_CPUS:g} cores"
    is_whole = _is_number(weight) and weight == int(weight)
    if not (is_whole and LEAST_SHARES <= weight <= MOST_SHARES):
        return f"{WEIGHT} {weight!r} is not a whole number from {LEAST_SHARES} to {MOST_SHARES}"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def unfit_cpu_list(located: LocatedContainer, wanted: Limits, present: Limits) -> str | None:
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
    busy = cpu_demand.count_busy(located.cgroup) if located.cgroup else None
    if busy is None:
        return "its threads are not visible here: fewer CPUs than busy threads would stall it"
    if busy > len(cpus):
        return f"it has {busy} busy threads: {len(cpus)} CPUs would stall it"
    return None
