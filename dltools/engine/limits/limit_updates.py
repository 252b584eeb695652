"""The fields of CPU limits on an engine's record, under Docker's names; Podman and CRI have others.

A container started with --cpus has its quota in NanoCpus, and refuses the other fields; any other
container takes only those. Zero and "" mean "unchanged" in an update: neutral values reset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dltools.engine.interface import LocatedContainer
from dltools.engine.kernel_scales import (
    PERIOD_US,
    fitting_period,
    quota_in_cores,
    quota_in_us,
    shares_for,
)
from dltools.notation.limits import Limits

FIELDS = ("NanoCpus", "CpuPeriod", "CpuQuota", "CpuShares", "CpusetCpus")
"""The fields that actions change, and that the journal keeps."""

_QUOTA = ("NanoCpus", "CpuPeriod", "CpuQuota")

_NANO = 1_000_000_000


def recorded_limits(fields: Mapping[str, Any], default_shares: int = 0) -> Limits:
    """Return the limits for which fields of a container stand. `default_shares`: those that have
    the effect of none."""
    nano, shares = fields.get("NanoCpus") or 0, fields.get("CpuShares")
    limits: Limits = {
        "cpus": nano / _NANO
        if nano > 0
        else quota_in_cores(fields.get("CpuQuota"), fields.get("CpuPeriod")),
        "cpuset": fields.get("CpusetCpus") or None,
        "memory": fields.get("Memory") or None,
    }
    return limits if shares in (None, 0, default_shares) else {**limits, "weight": shares}


def setting_updates(
    located: LocatedContainer, limits: Limits, engine_cpus: int
) -> Iterator[dict[str, Any]]:
    """Yield the updates that may set limits, the likeliest first."""
    fields: dict[str, Any] = {}
    if "cpus" in limits:
        fields |= _quota_fields(located.container.limit_fields, limits["cpus"], engine_cpus)
    yield from _with_the_rest(located, limits, fields)


def restoring_updates(
    located: LocatedContainer, original: Mapping[str, Any], limits: Limits, default_shares: int
) -> Iterator[dict[str, Any]]:
    """Yield the updates that may restore original fields, and set the weight and CPU list that are
    wanted. An update cannot say "no shares": `default_shares` have the same effect. A quota that is
    as it was is left out: after the neutral value of CpuPeriod the engine would refuse its owner's
    `docker update --cpus`."""
    fields: dict[str, Any]
    if _has_quota_of(located, original):
        fields = {}
    elif nano := original.get("NanoCpus"):
        fields = {"NanoCpus": nano}
    else:
        fields = {
            "CpuPeriod": original.get("CpuPeriod") or PERIOD_US,
            "CpuQuota": original.get("CpuQuota") or -1,
        }
    shares = original.get("CpuShares") or 0
    is_recorded = shares == (located.container.limit_fields.get("CpuShares") or 0)
    directory = located.controller("cpu")
    if directory is None and not is_recorded:  # the record alone counts, as at its next start
        fields["CpuShares"] = shares or default_shares
    if directory is None or (is_recorded and directory.weight() == limits.get("weight")):
        limits = {"cpuset": limits["cpuset"]} if "cpuset" in limits else {}
    yield from _with_the_rest(located, limits, fields, shares)


def _has_quota_of(located: LocatedContainer, original: Mapping[str, Any]) -> bool:
    """Tell whether a container has its original quota, on the record and in the kernel."""
    present, directory = located.container.limit_fields, located.controller("cpu")
    is_recorded = all((present.get(name) or 0) == (original.get(name) or 0) for name in _QUOTA)
    return is_recorded and (
        directory is None or directory.quota() == recorded_limits(original)["cpus"]
    )


def equivalent_original(
    located: LocatedContainer, original: Mapping[str, Any], engine_cpus: int
) -> dict[str, Any]:
    """Return fields that have the effect of an original quota, and that are accepted where a change
    that failed has left NanoCpus on the engine's record. {} where that is not so."""
    if original.get("NanoCpus") or (located.container.limit_fields.get("NanoCpus") or 0) <= 0:
        return {}
    cores = recorded_limits(original)["cpus"]
    if cores is None or cores >= located.usable_cpus:
        cores = engine_cpus
    return {"NanoCpus": _nano_cpus(cores)}


def creation_fields(original: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of the journal as an engine takes them when it creates a container."""
    return {name: value or ("" if name == "CpusetCpus" else 0) for name, value in original.items()}


def _quota_fields(
    present: Mapping[str, Any], cpus: float | None, engine_cpus: int
) -> dict[str, Any]:
    """Return the fields that set a quota in cores, None for none.

    NanoCpus has no value for "none": a quota of all the engine's CPUs has the same effect.
    """
    if present.get("NanoCpus"):
        return {"NanoCpus": _nano_cpus(engine_cpus if cpus is None else cpus)}
    if cpus is None:  # crun ignores "no quota" without a period
        return {"CpuPeriod": present.get("CpuPeriod") or PERIOD_US, "CpuQuota": -1}
    period = fitting_period(cpus, present.get("CpuPeriod"))
    return {"CpuPeriod": period, "CpuQuota": quota_in_us(cpus, period)}


def _with_the_rest(
    located: LocatedContainer, limits: Limits, fields: dict[str, Any], known_shares: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield the fields of a quota with those of the other limits: one for each way in which the
    weight may be meant. `known_shares` may be what it was set with, 0 if nothing was."""
    if "cpuset" in limits:  # the engine wants all CPUs named
        fields = {**fields, "CpusetCpus": limits["cpuset"] or located.usable_cpu_list}
    if "weight" not in limits:
        yield fields
        return
    recorded = (known_shares,) if known_shares and located.cgroup_version != 1 else ()
    for shares in (*recorded, *shares_for(limits["weight"], located.cgroup_version)):
        yield {**fields, "CpuShares": shares}


def _nano_cpus(cores: float) -> int:
    return round(cores * _NANO)
