"""Clocks that are set back: the samples of a stream go back in time.

Samples that are not later than a host's newest one are old ones, which count no more. After a step
back all are, until the clock has come as far again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dltools.observations.schema import SAMPLED

if TYPE_CHECKING:
    import pyarrow as pa

SET_BACK_US = 60_000_000
"""A step back that counts (microseconds, ours): a smaller one is soon made up for."""


def hosts_set_back(sampled_at: Mapping[str, int], table: pa.Table) -> list[str]:
    """Return the hosts of which all samples in a table are much older than their newest one before
    (`sampled_at`, microseconds)."""
    newest: dict[str, int] = {}
    times = table.column("time").cast("int64").to_pylist()
    kinds, hosts = (table.column(name).to_pylist() for name in ("kind", "host"))
    for time, kind, host in zip(times, kinds, hosts, strict=True):
        if kind in SAMPLED and time is not None:
            newest[host] = max(newest.get(host, time), time)
    return sorted(
        host for host, time in newest.items() if time < sampled_at.get(host, time) - SET_BACK_US
    )
