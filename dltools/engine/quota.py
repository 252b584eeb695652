"""CPU quotas in cores, from the fields of the engine and from the numbers of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PERIOD_US = 100_000
"""The kernel's default CPU period, in microseconds."""

NANO = 1_000_000_000


def nano_cpus(cores: float) -> int:
    """Return cores in billionths, as the engine's field NanoCpus counts them."""
    return round(cores * NANO)


def quota_in_cores(quota_us: int | None, period_us: int | None) -> float | None:
    """Return a quota in cores; None for no quota (0, -1 or missing). A period of 0 or None is the
    default."""
    if not quota_us or quota_us < 0:
        return None
    return quota_us / (period_us or PERIOD_US)


def configured_quota(host_config: Mapping[str, Any]) -> float | None:
    """Return the quota in cores that an inspected container's fields set, None for no quota."""
    nano = host_config.get("NanoCpus") or 0
    if nano > 0:
        return float(nano / NANO)
    return quota_in_cores(host_config.get("CpuQuota"), host_config.get("CpuPeriod"))
