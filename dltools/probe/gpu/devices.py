"""The GPUs of this host, and the MIG instances that some are cut into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dltools.probe.gpu.nvml import LostError, Nvml, text


@dataclass(slots=True)
class Device:
    """A GPU, or a MIG instance (`parent` then is its GPU's handle)."""

    handle: Any
    uuid: str
    parent: Any = None
    seen: int = 0  # NVML's time stamp of the newest utilisation sample, microseconds

    @property
    def board(self) -> Any:
        """The handle of the whole GPU."""
        return self.parent or self.handle


@dataclass(slots=True)
class Devices:
    """How many GPUs there are, those that could be opened, and how many could not."""

    count: int
    opened: list[Device] = field(default_factory=list)
    unopened_count: int = 0


def open_devices(nvml: Nvml) -> Devices:
    """Open all GPUs. Raises `LostError` where NVML is gone; a lost GPU does not hide the others."""
    found = Devices(nvml.call("DeviceGetCount") or 0)
    for index in range(found.count):
        try:
            opened = _open(nvml, index)
        except LostError:
            opened = None
        if opened is None:
            found.unopened_count += 1
        else:
            found.opened += opened
    return found


def _open(nvml: Nvml, index: int) -> list[Device] | None:
    """Return a GPU, or its MIG instances where it is cut into such; None if it cannot be opened."""
    handle = nvml.call("DeviceGetHandleByIndex", index)
    if handle is None:
        return None
    mode = nvml.call("DeviceGetMigMode", handle)
    if mode is not None and mode[0] == 1:
        slots = nvml.call("DeviceGetMaxMigDeviceCount", handle) or 0
        parts = (
            nvml.call("DeviceGetMigDeviceHandleByIndex", handle, slot) for slot in range(slots)
        )
        instances = [part for part in parts if part is not None]  # None: an empty slot
        return [
            Device(part, text(nvml.call("DeviceGetUUID", part)), parent=handle)
            for part in instances
        ]
    return [Device(handle, text(nvml.call("DeviceGetUUID", handle)))]
