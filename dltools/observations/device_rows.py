"""Rows about the devices that containers hold. Each kind of device has rows of a kind of its own;
GPUs are the only ones so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dltools.observations.host_samples import DeviceUse
from dltools.observations.schema import Kind

DEVICE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    Kind.GPU: (
        "gpu_uuid",
        "gpu_utilization_ratio",
        "gpu_memory_used_bytes",
        "gpu_memory_limit_bytes",
    )
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
