"""A container's CPU limits in the fields of CRI: on record, changed, and restored.

In an update 0 means "unchanged", and a quota of -1 means none; both are true of containerd 1.6 and
1.7. The runtime's record is the container's runtime specification, which an update changes, too.
What its pod asked for stays beside it in the configuration that kubelet has made it with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dltools.engine.interface import Container, Fields, LocatedContainer, RefusedError
from dltools.engine.scales import PERIOD_US, fitting_period, quota_in_cores, quota_in_us, shares_for
from dltools.notation.json_values import table_in
from dltools.notation.limits import Limits

_QUOTA, _PERIOD, _SHARES = "cpu_quota", "cpu_period", "cpu_shares"


def limit_fields(info: Mapping[str, Any]) -> Fields:
    """Return the limits on the runtime's record, for the journal, given the verbose status."""
    cpu = table_in(info, "runtimeSpec", "linux", "resources", "cpu")
    return {
        _QUOTA: int(cpu.get("quota") or 0),
        _PERIOD: int(cpu.get("period") or 0),
        _SHARES: int(cpu.get("shares") or 0),
    }


def recorded_limits(fields: Fields, info: Mapping[str, Any] | None = None) -> Limits:
    """Return the limits for which fields of the journal stand. The CPU list is left out: it is
    kubelet's, whose CPU manager rewrites it."""
    memory = table_in(info or {}, "runtimeSpec", "linux", "resources", "memory").get("limit")
    found: Limits = {
        "cpus": quota_in_cores(fields.get(_QUOTA), fields.get(_PERIOD)),
        "memory": memory if isinstance(memory, int) and memory > 0 else None,
    }
    return {**found, "weight": shares} if (shares := fields.get(_SHARES)) else found


def pod_quota(container: Container) -> float | None:
    """Return the quota in cores that its pod asks for, None where it asks for none, or where the
    runtime does not say."""
    asked = table_in(container.native, "config", "linux", "resources")
    return quota_in_cores(asked.get(_QUOTA), asked.get(_PERIOD))


def updates(located: LocatedContainer, wanted: Limits, original: Fields | None) -> Iterator[Fields]:
    """Yield the updates that may set limits, the likeliest first, with the quota of the journal's
    `original` fields, if given. On version 2 their shares come first: several stand for one weight.
    Raises `RefusedError` for a quota above that of its pod."""
    fields: dict[str, int] = {}
    if original is not None:
        fields = {_QUOTA: original.get(_QUOTA) or -1, _PERIOD: original.get(_PERIOD) or PERIOD_US}
    elif "cpus" in wanted:
        fields = _quota_fields(located, wanted["cpus"])
    version = located.cgroup_version
    choices = shares_for(wanted["weight"], version) if "weight" in wanted else (0,)
    if version == 2 and original and original.get(_SHARES):
        choices = (original[_SHARES], *choices)
    for shares in choices:
        yield {**fields, _SHARES: shares}


def _quota_fields(located: LocatedContainer, cpus: float | None) -> dict[str, int]:
    bound = pod_quota(located.container)
    if bound is not None and cpus is None and bound >= located.usable_cpus:
        cpus = bound
    if bound is not None and (cpus is None or cpus > bound):
        raise RefusedError(f"its pod limits it to {bound:g} CPUs: dl-apply sets no higher quota")
    period = located.container.limit_fields.get(_PERIOD)
    if cpus is None:
        return {_QUOTA: -1, _PERIOD: period or PERIOD_US}
    period = fitting_period(cpus, period)
    return {_QUOTA: quota_in_us(cpus, period), _PERIOD: period}
