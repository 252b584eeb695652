"""A container's CPU limits in the fields of CRI: on record, changed, and restored.

In an update 0 means "unchanged", and a quota of -1 means none; both are true of containerd 1.6 and
1.7. The runtime's record is the container's runtime specification, which an update changes, too.
What its pod asked for stays beside it in the configuration that kubelet has made it with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dltools.engine.cri.connection import Connection
from dltools.engine.interface import Container, Fields, LocatedContainer, RefusedError
from dltools.engine.kernel_scales import quota_in_cores, shares_for
from dltools.engine.limits import limit_updates as common
from dltools.engine.limits.limit_writing import WritesLimits
from dltools.engine.parts import LimitChange
from dltools.notation.json_values import table_in
from dltools.notation.limits import DEFAULT_WEIGHT, Limits

_NAMES = {"CpuQuota": "cpu_quota", "CpuPeriod": "cpu_period", "CpuShares": "cpu_shares"}
"""CRI's names of Docker's fields."""


def limit_fields(info: Mapping[str, Any]) -> Fields:
    """Return the limits on the runtime's record, for the journal, given the verbose status."""
    cpu = table_in(info, "runtimeSpec", "linux", "resources", "cpu")
    return {name: int(cpu.get(name.removeprefix("cpu_")) or 0) for name in _NAMES.values()}


def recorded_limits(fields: Fields, info: Mapping[str, Any] | None = None) -> Limits:
    """Return the limits for which fields of the journal stand. The CPU list is left out: it is
    kubelet's, whose CPU manager rewrites it."""
    memory = table_in(info or {}, "runtimeSpec", "linux", "resources", "memory").get("limit")
    is_limited = isinstance(memory, int) and memory > 0
    limits = common.recorded_limits({**_common(fields), "Memory": memory if is_limited else None})
    limits.pop("cpuset", None)
    return limits


def _common(fields: Fields) -> Fields:
    """Return fields under Docker's names."""
    return {name: fields.get(own) or 0 for name, own in _NAMES.items()}


def pod_quota(container: Container) -> float | None:
    """Return the quota in cores that its pod asks for, None where it asks for none, or where the
    runtime does not say."""
    asked = table_in(container.native, "config", "linux", "resources")
    return quota_in_cores(asked.get("cpu_quota"), asked.get("cpu_period"))


def updates(located: LocatedContainer, limits: Limits, original: Fields | None) -> Iterator[Fields]:
    """Yield the updates that may set limits, the likeliest first, with the quota of the journal's
    `original` fields, if given. Raises `RefusedError` for a quota above that of its pod."""
    limits = limits.copy()
    limits.pop("cpuset", None)  # it is kubelet's
    container = located.container
    seen = replace(
        located, container=replace(container, limit_fields=_common(container.limit_fields))
    )
    if original is not None:
        default, *_ = shares_for(DEFAULT_WEIGHT, located.cgroup_version)
        made = common.restoring_updates(seen, _common(original), limits, default)
    else:
        if "cpus" in limits:
            limits["cpus"] = _within_pod(located, limits["cpus"])
        made = common.setting_updates(seen, limits, 0)
    for fields in made:
        yield {_NAMES[name]: value for name, value in fields.items()}


def _within_pod(located: LocatedContainer, cpus: float | None) -> float | None:
    """Return a quota that its pod allows."""
    bound = pod_quota(located.container)
    if bound is not None and cpus is None and bound >= located.usable_cpus:
        cpus = bound
    if bound is not None and (cpus is None or cpus > bound):
        raise RefusedError(f"its pod limits it to {bound:g} CPUs: dl-apply sets no higher quota")
    return cpus


class CriLimits(WritesLimits):
    """Sets limits by requests to the runtime."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def update_limits(self, change: LimitChange) -> None:
        """Set a quota, or the original one, and a weight."""
        located = change.located
        original = change.original.fields if change.original else None
        for fields in updates(located, change.wanted, original):
            self._connection.ask(
                "UpdateContainerResources", container_id=located.container.id, linux=fields
            )
            if change.is_in_force():
                return

    def recorded(self, limit_fields: Fields) -> Limits:
        """Return the limits for which the fields of a journal's entry stand."""
        return recorded_limits(limit_fields)
