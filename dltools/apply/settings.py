"""The CPU settings of a container: in force, on the engine's record, and what is attainable.

Settings are compared by their effect, as the kernel's files report it: after a reset the engine
shows -1, 1024 or "0-1" where it showed 0, 0 and "" at first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dltools.apply.located import LocatedContainer
from dltools.engine.containers import Engine
from dltools.engine.quota import configured_quota
from dltools.engine.weight import configured_weight, weight_from_v2, weight_to_v2
from dltools.notation.resources import format_cpus, parse_cpus
from dltools.plan.realisation.settings import Settings


def settings_in_force(located: LocatedContainer) -> Settings:
    """Return the settings in force: from the kernel's files, else from the engine's record."""
    directory = located.controller("cpu")
    if directory is None:
        return recorded_settings(located.container.host_config, located)
    settings: Settings = {"cpus": _quota(directory.quota(), located)}
    if (weight := directory.weight()) is not None:
        settings["cpu_weight"] = weight
    if cpuset_directory := located.controller("cpuset"):
        cpu_list = cpuset_directory.cpuset()
        settings["cpuset"] = None if cpu_list in (None, located.usable_cpu_list) else cpu_list
    if located.cgroup is None or not located.cgroup.exists:  # it has ended while it was read
        return recorded_settings(located.container.host_config, located)
    return settings


def recorded_settings(host_config: Mapping[str, Any], located: LocatedContainer) -> Settings:
    """Return the settings that the engine's fields stand for: those that a restart of the
    container would bring about."""
    cpu_list = format_cpus(parse_cpus(host_config.get("CpusetCpus") or ""))
    return {
        "cpus": _quota(configured_quota(host_config), located),
        "cpu_weight": configured_weight(host_config),
        "cpuset": None if cpu_list in ("", located.usable_cpu_list) else cpu_list,
    }


def current_settings(engine: Engine, located: LocatedContainer) -> Settings:
    """Return the settings in force now: from the kernel's files, else from a new inspection.

    Raises `GoneError` or `RefusedError`.
    """
    if located.cgroup is not None and located.cgroup.exists:
        return settings_in_force(located)
    container = engine.inspect(located.container.id)
    return settings_in_force(replace(located, container=container, cgroup=None))


def attainable_settings(located: LocatedContainer, wanted: Settings) -> Settings:
    """Return settings as the kernel can hold them: no quota instead of one of all CPUs or more,
    and on cgroup version 2 the nearest weight of its own scale."""
    found = dict(wanted)
    if "cpus" in wanted:
        found["cpus"] = _quota(wanted["cpus"], located)
    if wanted.get("cpu_weight") is not None and located.cgroup_version == 2:
        found["cpu_weight"] = weight_from_v2(weight_to_v2(wanted["cpu_weight"]))
    return found


def _quota(cores: float | None, located: LocatedContainer) -> float | None:
    """Return a quota in cores, None for no quota and for one of all CPUs or more."""
    return None if cores is None or cores >= located.usable_cpus else cores
