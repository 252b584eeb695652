"""A container's limits: what is in force, and which engine fields bring about another.

Limits are compared by their effect, as the kernel's files report it: after a reset the engine
shows -1, 1024 or "0-1" where it showed 0, 0 and "" at first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dltools.engine import cgroup, host
from dltools.engine.cgroup import Cgroup
from dltools.engine.containers import Container, Engine
from dltools.engine.kernel_files import read_int, read_text
from dltools.engine.quota import PERIOD_US, configured_quota, nano_cpus
from dltools.engine.weight import configured_weight, weight_from_v2, weight_to_v2
from dltools.notation.cpu_lists import format_cpus, parse_cpus
from dltools.plan.realisation.settings import Settings

FIELDS = ("NanoCpus", "CpuPeriod", "CpuQuota", "CpuShares", "CpusetCpus")
"""The engine's fields that actions change, and that the journal keeps."""

LEAST_QUOTA_US = 1000
LEAST_CPUS = LEAST_QUOTA_US / PERIOD_US
"""Smallest quota in cores."""

LEAST_SHARES, MOST_SHARES = 2, 262_144
"""Bounds of a weight, in Docker's shares."""

CPUSET = "cpuset.cpus"
_V1_FILES = ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares")


@dataclass(frozen=True, slots=True)
class Place:
    """A container with its cgroup on this machine (None: out of sight), its node's size, and the
    list of all CPUs that a container may have there."""

    container: Container
    cgroup: Cgroup | None
    cpus: float
    cpuset: str


def locate(engine: Engine, container: Container, mounts: list[cgroup.Mount]) -> Place:
    """Find a container's cgroup, where it is on this machine and running."""
    found = None
    if container.pid and cgroup.belongs_to(container.pid, container.id):
        found = cgroup.of_process(container.pid, mounts)
    every = format_cpus(range(max(1, engine.cpus)))
    if found is None:
        return Place(container, None, float(engine.cpus), every)
    bounds = host.bounds([found], mounts)
    usable = host.usable_cpus(bounds) or float(engine.cpus)
    lists = (directory.cpuset() for directory in bounds.cpuset)
    return Place(container, found, usable, next((text for text in lists if text), every))


def in_force(place: Place) -> Settings:
    """Return the CPU settings in force: from the kernel, else from the engine's fields."""
    found = place.cgroup.directory("cpu") if place.cgroup else None
    if found is None:
        return recorded(place.container.host_config, place)
    cores, weight = found.quota(), found.weight()
    settings: Settings = {"cpus": None if cores is None or cores >= place.cpus else cores}
    if weight is not None:
        settings["cpu_weight"] = weight
    if at := place.cgroup and place.cgroup.directory("cpuset"):
        text = at.cpuset()
        settings["cpuset"] = None if text in (None, place.cpuset) else text
    return settings


def exactly(place: Place) -> dict[str, str]:
    """Return the texts of the kernel's files that an action can change, {} where out of sight."""
    found = place.cgroup.directory("cpu") if place.cgroup else None
    if found is None:
        return {}
    directory, number = found
    names = ("cpu.max", "cpu.weight") if number == 2 else _V1_FILES
    texts = {name: read_text(directory / name).strip() for name in names}
    if at := place.cgroup and place.cgroup.directory("cpuset"):
        # By its effect: version 2 has no text for "all" at first, and the engine cannot set that.
        texts[CPUSET] = at.cpuset() or ""
    return texts


def recorded(config: Mapping[str, Any], place: Place) -> Settings:
    """Return the CPU settings that the engine's own fields stand for, by their effect: what a
    restart of the container would bring about."""
    cores = configured_quota(config)
    return {
        "cpus": cores if cores is not None and cores < place.cpus else None,
        "cpu_weight": configured_weight(config),
        "cpuset": _normal(config.get("CpusetCpus"), place.cpuset),
    }


def attainable(place: Place, wanted: Settings) -> Settings:
    """Return settings as the kernel can hold them: no quota for one of all CPUs or more, and on
    version 2 the nearest weight of its own scale."""
    found = dict(wanted)
    cpus, weight = wanted.get("cpus"), wanted.get("cpu_weight")
    if cpus is not None and cpus >= place.cpus:
        found["cpus"] = None
    if weight is not None and version(place) == 2:
        found["cpu_weight"] = weight_from_v2(weight_to_v2(weight))
    return found


def version(place: Place) -> int:
    """Return the cgroup version that holds a container's CPU settings, 1 where that is unseen."""
    at = place.cgroup.directory("cpu") if place.cgroup else None
    return at[1] if at else 1


def _normal(cpus: str | None, every: str) -> str | None:
    """Return a CPU list as the kernel writes it, None for all."""
    text = format_cpus(parse_cpus(cpus or ""))
    return None if text in ("", every) else text


# Engine fields


def cpu_fields(place: Place, cpus: float | None, engine_cpus: int) -> dict[str, Any]:
    """Return the fields that set a quota in cores, None for none.

    A container started with --cpus accepts only NanoCpus, any other only CpuQuota. NanoCpus has
    no value for "none": all of the engine's CPUs comes to the same.
    """
    config = place.container.host_config
    if config.get("NanoCpus"):
        return {"NanoCpus": nano_cpus(engine_cpus if cpus is None else cpus)}
    if cpus is None:
        return {"CpuQuota": -1}
    period = config.get("CpuPeriod") or PERIOD_US
    if cpus * period < LEAST_QUOTA_US:  # too short a period for so small a quota
        period = max(period, PERIOD_US)
    return {"CpuPeriod": period, "CpuQuota": max(LEAST_QUOTA_US, round(cpus * period))}


def cpuset_fields(place: Place, cpuset: str | None) -> dict[str, Any]:
    """Return the field that sets a CPU list, None for all; the engine has no other word for all."""
    return {"CpusetCpus": cpuset or place.cpuset}


def original_cpu_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that put a quota back as the container was started with it."""
    if fields.get("NanoCpus"):
        return {"NanoCpus": fields["NanoCpus"]}
    return {
        "CpuPeriod": fields.get("CpuPeriod") or PERIOD_US,
        "CpuQuota": fields.get("CpuQuota") or -1,
    }


def stuck_cpu_fields(place: Place, fields: Mapping[str, Any], engine_cpus: int) -> dict[str, Any]:
    """Return the field that comes to the same as an original quota where a change that failed has
    left NanoCpus on record, {} where it has not: the engine takes no other field beside it."""
    if fields.get("NanoCpus") or (place.container.host_config.get("NanoCpus") or 0) <= 0:
        return {}
    cores = recorded(fields, place)["cpus"]
    return {"NanoCpus": nano_cpus(engine_cpus if cores is None else cores)}


def weight_fields(place: Place, weight: float) -> list[dict[str, Any]]:
    """Return the fields that set a weight, the likeliest first.

    Version 2 has a scale of its own, and runc has had two formulas to convert Docker's shares to
    it, so that only reading back tells which of two candidates is right.
    """
    if version(place) == 1:
        return [{"CpuShares": max(LEAST_SHARES, round(weight))}]
    kernel = weight_to_v2(weight)
    return [{"CpuShares": shares} for shares in (_linear(kernel), _quadratic(kernel))]


def _linear(kernel: int) -> int:
    """Invert runc's first formula: weight = 1 + (shares - 2) * 9999 / 262142, rounded down."""
    return 2 + math.ceil((kernel - 1) * 262142 / 9999)


def _quadratic(kernel: int) -> int:
    """Invert runc's second formula (1.3.2): log10(weight) = (l^2 + 125 l) / 612 - 7/34, rounded
    up, with l = log2(shares)."""
    level = (-125 + math.sqrt(125**2 + 4 * 612 * (math.log10(kernel) + 7 / 34))) / 2
    return min(MOST_SHARES, max(LEAST_SHARES, math.floor(2**level)))


# Direct writing


def write_directly(place: Place, settings: Settings) -> None:
    """Write CPU settings into the cgroup's files, past the engine. Raises OSError."""
    found = place.cgroup.directory("cpu") if place.cgroup else None
    if found is None:
        raise FileNotFoundError("its cgroup is not visible here")
    directory, version = found
    if "cpus" in settings:
        _write_quota(directory, version, settings["cpus"])
    if "cpu_weight" in settings:
        weight = settings["cpu_weight"]
        if version == 1:
            (directory / "cpu.shares").write_text(str(max(LEAST_SHARES, round(weight))))
        else:
            (directory / "cpu.weight").write_text(str(weight_to_v2(weight)))
    if "cpuset" in settings:
        _write_cpuset(place, settings["cpuset"] or place.cpuset)


def write_back(place: Place, kernel: dict[str, str]) -> None:
    """Write the texts that `exactly` gave into the cgroup's files. Raises OSError."""
    found = place.cgroup.directory("cpu") if place.cgroup else None
    if found is None:
        raise FileNotFoundError("its cgroup is not visible here")
    directory, version = found
    if version == 1:  # a period alone could be too short for the quota in force
        (directory / "cpu.cfs_quota_us").write_text("-1")
    for name, text in sorted(kernel.items(), key=lambda item: item[0] == "cpu.cfs_quota_us"):
        if name != CPUSET:
            (directory / name).write_text(text)
    if kernel.get(CPUSET):
        _write_cpuset(place, kernel[CPUSET])


def _write_cpuset(place: Place, cpus: str) -> None:
    found = place.cgroup.directory("cpuset") if place.cgroup else None
    if found is None:
        raise FileNotFoundError("its cpuset is not visible here")
    (found[0] / CPUSET).write_text(cpus)


def _write_quota(directory: Path, version: int, cpus: float | None) -> None:
    if version == 1:
        period = read_int(directory / "cpu.cfs_period_us") or PERIOD_US
        quota = -1 if cpus is None else max(LEAST_QUOTA_US, round(cpus * period))
        (directory / "cpu.cfs_quota_us").write_text(str(quota))
        return
    present = read_text(directory / "cpu.max").split()
    period = int(present[1]) if len(present) == 2 else PERIOD_US
    if cpus is None:
        (directory / "cpu.max").write_text(f"max {period}")
        return
    quota = max(LEAST_QUOTA_US, round(cpus * period))
    burst = directory / "cpu.max.burst"
    if (read_int(burst) or 0) > quota:  # the kernel refuses a quota below the burst
        burst.write_text(str(quota))
    (directory / "cpu.max").write_text(f"{quota} {period}")
