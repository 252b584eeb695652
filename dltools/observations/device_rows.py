"""Rows about the devices that containers hold. Each kind of device has rows of a kind of its own;
GPUs are the only ones so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dltools.observations.host_samples import DeviceUse
from dltools.observations.schema import Kind

_CELLS = ("uuid", "utilization_ratio", "memory_used_bytes", "memory_limit_bytes")

DEVICE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    kind: tuple(f"{kind}_{cell}" for cell in _CELLS) for kind in (Kind.GPU,)
}
"""By the kind of a row, the columns of a device's name and of the fields of `DeviceUse`."""


def use_in(row: Mapping[str, Any]) -> DeviceUse:
    """Return what the container of a row uses of the device."""
    ratio, memory, limit = map(row.get, DEVICE_COLUMNS[row["kind"]][1:])
    return DeviceUse(math.nan if ratio is None else ratio, memory, limit)


def device_cells(name: str, use: DeviceUse, kind: str = Kind.GPU) -> dict[str, Any]:
    """Return the cells of a row about a device."""
    ratio = None if math.isnan(use.ratio) else use.ratio
    cells = (name, ratio, use.memory, use.limit)
    return {"kind": str(kind), **dict(zip(DEVICE_COLUMNS[kind], cells, strict=True))}
