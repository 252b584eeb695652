"""The engine's fields that set a quota, a weight or a CPU list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dltools.apply.located import LocatedContainer
from dltools.apply.settings import recorded_settings
from dltools.engine.quota import PERIOD_US, nano_cpus
from dltools.engine.weight import weight_to_v2

FIELDS = ("NanoCpus", "CpuPeriod", "CpuQuota", "CpuShares", "CpusetCpus")
"""The fields that actions change, and that the journal keeps."""

LEAST_QUOTA_US = 1000
LEAST_CPUS = LEAST_QUOTA_US / PERIOD_US
"""Smallest quota in cores."""

LEAST_SHARES, MOST_SHARES = 2, 262_144
"""Bounds of a weight, in Docker's shares."""


def quota_fields(
    host_config: Mapping[str, Any], cpus: float | None, engine_cpus: int
) -> dict[str, Any]:
    """Return the fields that set a quota in cores, None for none.

    A container started with --cpus accepts only NanoCpus, any other only CpuQuota. NanoCpus has
    no value for "none": a quota of all the engine's CPUs has the same effect.
    """
    if host_config.get("NanoCpus"):
        return {"NanoCpus": nano_cpus(engine_cpus if cpus is None else cpus)}
    if cpus is None:
        return {"CpuQuota": -1}
    period = host_config.get("CpuPeriod") or PERIOD_US
    if cpus * period < LEAST_QUOTA_US:  # too short a period for so small a quota
        period = max(period, PERIOD_US)
    return {"CpuPeriod": period, "CpuQuota": max(LEAST_QUOTA_US, round(cpus * period))}


def original_quota_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that restore the quota that a container was started with."""
    if fields.get("NanoCpus"):
        return {"NanoCpus": fields["NanoCpus"]}
    return {
        "CpuPeriod": fields.get("CpuPeriod") or PERIOD_US,
        "CpuQuota": fields.get("CpuQuota") or -1,
    }


def equivalent_quota_fields(
    located: LocatedContainer, fields: Mapping[str, Any], engine_cpus: int
) -> dict[str, Any]:
    """Return the NanoCpus that have the effect of an original quota in other fields.

    A failed change may have left NanoCpus on the engine's record, and then the engine accepts no
    CpuQuota. {} if that is not so.
    """
    if fields.get("NanoCpus") or (located.container.host_config.get("NanoCpus") or 0) <= 0:
        return {}
    cores = recorded_settings(fields, located)["cpus"]
    return {"NanoCpus": nano_cpus(engine_cpus if cores is None else cores)}


def cpuset_fields(located: LocatedContainer, cpuset: str | None) -> dict[str, Any]:
    """Return the field that sets a CPU list, None for all CPUs: the engine wants them named."""
    return {"CpusetCpus": cpuset or located.usable_cpu_list}


def weight_candidates(located: LocatedContainer, weight: float) -> list[dict[str, Any]]:
    """Return the fields that may set a weight, the likeliest first.

    Version 2 has a scale of its own, and runc has had two formulas that convert Docker's shares to
    it: only reading back tells which of two candidates is right.
    """
    if located.cgroup_version == 1:
        return [{"CpuShares": max(LEAST_SHARES, round(weight))}]
    steps = weight_to_v2(weight)
    return [{"CpuShares": shares} for shares in (_linear_shares(steps), _quadratic_shares(steps))]


def _linear_shares(steps: int) -> int:
    """Invert runc's first formula: weight = 1 + (shares - 2) * 9999 / 262142, rounded down."""
    return 2 + math.ceil((steps - 1) * 262142 / 9999)


def _quadratic_shares(steps: int) -> int:
    """Invert runc's second formula (1.3.2): log10(weight) = (l^2 + 125 l) / 612 - 7/34, rounded
    up, with l = log2(shares)."""
    level = (-125 + math.sqrt(125**2 + 4 * 612 * (math.log10(steps) + 7 / 34))) / 2
    return min(MOST_SHARES, max(LEAST_SHARES, math.floor(2**level)))


def creation_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of the journal as an engine takes them when it creates a container."""
    return {name: value or ("" if name == "CpusetCpus" else 0) for name, value in fields.items()}
