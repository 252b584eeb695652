"""Whether a container stood still between two of its rows, and whether it was held back.

A container is still if it has run all the time, has used almost no CPU, disk, network or device,
and has not waited for a CPU or for input and output. So a validation, which computes, and a
checkpoint, which writes, are not still. An unknown use of a CPU or device counts as use. The rules
are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from dltools.notation.limits import ASKED, WEIGHT, from_columns, weight_of
from dltools.observations.device_rows import use_in
from dltools.observations.idleness import STILL_CORES

Row = Mapping[str, Any]

_RATIO, _BYTES_PER_S = 0.01, 10_000.0
"""A container that uses less is still: part of a device or of the time, bytes per second."""

_BUSY_HOST = 0.9
"""A container may wait for a CPU if this part of the host's CPUs is busy, or more."""

_LITTLE = 0.1
"""A container that is held back gets less than this part of the CPUs that it wants."""

_MOVED = ("io_read_bytes", "io_write_bytes", "network_receive_bytes", "network_transmit_bytes")


def is_held_back(before: Row, now: Row) -> bool:
    """Tell whether a container waits between two of its rows: paused in its turns, or at a lower
    weight than its owner asked for, with next to nothing of the CPUs that it wants."""
    if now.get("state") == "paused":
        return now.get("turn_seconds") is not None
    weight, own = now.get(WEIGHT), weight_of(from_columns(now, ASKED))
    span_s, demand = seconds_between(before["time"], now["time"]), now.get("demand_cores")
    if weight is None or weight >= own or demand is None or demand < STILL_CORES or span_s <= 0:
        return False
    used = _rate(before, now, "cpu_seconds", span_s)
    return used is not None and used < _LITTLE * demand


def is_still(
    before: Row, now: Row, devices: Iterable[Row], node_before: Row | None, node: Row | None
) -> bool:
    """Tell whether a container was still between two of its rows. `devices` are rows of its
    devices, the nodes rows of its host. An unknown use of a CPU or device counts as use."""
    span_s = seconds_between(before["time"], now["time"])
    states = (before.get("state"), now.get("state"))
    if span_s <= 0 or states != ("running", "running") or now.get("turn_seconds") is not None:
        return False
    used = _rate(before, now, "cpu_seconds", span_s)
    if used is None or used >= STILL_CORES:
        return False
    if any((_rate(before, now, name, span_s) or 0.0) >= _BYTES_PER_S for name in _MOVED):
        return False
    waits = _rate(before, now, "io_pressure_seconds", span_s)
    if waits is not None and waits >= _RATIO:
        return False
    if any(not use_in(row).ratio < _RATIO for row in devices):
        return False
    return not _may_wait_for_cpu(before, now, node_before, node, span_s)


def _may_wait_for_cpu(
    before: Row, now: Row, node_before: Row | None, node: Row | None, span_s: float
) -> bool:
    demand, waits = now.get("demand_cores"), _rate(before, now, "cpu_pressure_seconds", span_s)
    if demand is not None:
        return bool(demand >= STILL_CORES)
    if waits is not None:
        return waits >= STILL_CORES
    if node is None or node_before is None or not node.get("cpu_count"):
        return True
    host_s = seconds_between(node_before["time"], node["time"])
    used = _rate(node_before, node, "cpu_seconds", host_s) if host_s > 0 else None
    return used is None or bool(used >= _BUSY_HOST * node["cpu_count"])


def _rate(before: Row, now: Row, name: str, span_s: float) -> float | None:
    """Return the rise of a counter per second, None if it is unknown or was reset."""
    first, last = before.get(name), now.get(name)
    if first is None or last is None or last < first:
        return None
    return float(last - first) / span_s


def seconds_between(before: datetime, now: datetime) -> float:
    """Return the time from one moment to another (s)."""
    return (now - before).total_seconds()
