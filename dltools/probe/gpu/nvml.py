"""NVML, and the GPUs of this host that it knows; called by `gpu_rows`.

Each call returns a value, or keeps the reason why there is none. NVML fails in many ways that are
no fault of ours: a board does not know a call, a GPU falls off the bus, a process ends between two
calls, a driver is updated while we run.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dltools.engine import host

DRIVER = (Path("/dev/nvidiactl"), Path("/proc/driver/nvidia/version"))

NOT_AVAILABLE = (1 << 64) - 1
"""The size that means "unknown" in NVML."""

_LOST = (
    "GPU_IS_LOST",
    "RESET_REQUIRED",
    "UNKNOWN",
    "UNINITIALIZED",
    "GPU_NOT_FOUND",
    "DRIVER_NOT_LOADED",
    "LIB_RM_VERSION_MISMATCH",
)


class LostError(Exception):
    """The GPU, or NVML as a whole, is no longer there; the message is NVML's."""


def driver_present() -> bool:
    """Tell whether this machine has NVIDIA's driver; without it NVML is not loaded."""
    return any(path.exists() for path in DRIVER)


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:80] or type(error).__name__


class Memory(NamedTuple):
    """The bytes of a GPU that programs can have, and those that they have; None if unknown. What
    the driver keeps for itself counts in neither (measured on an H100: 480 MiB of 81,559).
    `is_unified`: the GPU has none of its own, and these are the host's."""

    limit: int | None
    used: int | None
    is_unified: bool = False


class Nvml:
    """NVML, loaded and initialised. `gaps` maps calls to the reason why their value is missing."""

    def __init__(self) -> None:
        """Raises `LostError` if NVML cannot be loaded."""
        import pynvml

        self._nvml: ModuleType = pynvml
        # 0, success, stands for an error that the bindings do not know.
        self._lost = {getattr(pynvml, f"NVML_ERROR_{name}", 0) for name in _LOST}
        self.gaps: dict[str, str] = {}
        try:
            pynvml.nvmlInit()
        except Exception as error:
            raise LostError(_words(error)) from error

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what `nvml<name>` returns, None if it fails; `gaps` then has the reason.

        Raises `LostError` if the GPU, or NVML, is gone.
        """
        function = getattr(self._nvml, f"nvml{name}", None)
        if function is None:
            self.gaps[name] = "not in this version of the bindings"
            return None
        try:
            return function(*arguments)
        except Exception as error:
            if getattr(error, "value", None) in self._lost:
                raise LostError(_words(error)) from error
            self.gaps[name] = _words(error)
            return None

    def memory(self, handle: Any) -> Memory:
        """Return the memory of a GPU. Raises `LostError` if it is gone."""
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        info = None if version is None else self.call("DeviceGetMemoryInfo", handle, version)
        if info is not None:
            total, reserved = known_bytes(info.total), known_bytes(info.reserved)
            limit = total if total is None or reserved is None else total - reserved
            return Memory(limit, known_bytes(info.used))
        # An older driver counts what it keeps as used.
        info = self.call("DeviceGetMemoryInfo", handle)
        if info is not None:
            return Memory(known_bytes(info.total), known_bytes(info.used))
        if not self.failed_for("DeviceGetMemoryInfo", "not supported"):
            return Memory(None, None)
        sizes = host.memory_bytes()
        total, available = sizes.get("MemTotal"), sizes.get("MemAvailable")
        used = None if total is None or available is None else total - available
        return Memory(total, used, is_unified=True)

    def failed_for(self, name: str, reason: str) -> bool:
        """Tell whether a call has failed for a reason, in NVML's words and small letters."""
        return self.gaps.get(name, "").lower() == reason

    def process_samples(self, handle: Any, since: int) -> list[Any] | None:
        """Return samples of the use of a GPU by process, later than a time stamp of NVML's, [] if
        nothing has run; None if it is unknown. Where the first call fails, as on Blackwell, newer
        drivers have another. Raises `LostError` if the GPU is gone."""
        for name in ("DeviceGetProcessUtilization", "DeviceGetProcessesUtilizationInfo"):
            samples: list[Any] | None = self.call(name, handle, since)
            if samples is not None or self.failed_for(name, "not found"):
                return samples or []
        return None

    def close(self) -> None:
        """Shut NVML down."""
        with suppress(Exception):
            self._nvml.nvmlShutdown()


def known_bytes(size: Any) -> int | None:
    """Return a size in bytes, None if NVML does not know it."""
    return int(size) if isinstance(size, int) and 0 <= size < NOT_AVAILABLE else None


def decoded(value: Any) -> str:
    """Return a name; older bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@dataclass(slots=True)
class Device:
    """A GPU, or a MIG instance (`parent` then is its GPU's handle)."""

    handle: Any
    uuid: str
    parent: Any = None
    seen: int = 0  # NVML's time stamp of the newest utilisation sample, microseconds
    seen_at: float = 0.0  # when it was read (s)

    @property
    def board(self) -> Any:
        """The handle of the whole GPU."""
        return self.parent or self.handle


def open_devices(nvml: Nvml) -> list[list[Device] | None]:
    """Open all GPUs; return what `_open` does of each. Raises `LostError` where NVML is gone; a
    lost GPU does not hide the others."""
    devices: list[list[Device] | None] = []
    for index in range(nvml.call("DeviceGetCount") or 0):
        try:
            devices.append(_open(nvml, index))
        except LostError:
            devices.append(None)
    return devices


def _open(nvml: Nvml, index: int) -> list[Device] | None:
    """Return a GPU, or its MIG instances where it is cut into such; None if it cannot be opened."""
    handle = nvml.call("DeviceGetHandleByIndex", index)
    if handle is None:
        return None
    mode = nvml.call("DeviceGetMigMode", handle)
    if mode is not None and mode[0] == 1:
        slots = range(nvml.call("DeviceGetMaxMigDeviceCount", handle) or 0)
        parts = [nvml.call("DeviceGetMigDeviceHandleByIndex", handle, slot) for slot in slots]
        instances = [part for part in parts if part is not None]  # None: an empty slot
        return [
            Device(part, decoded(nvml.call("DeviceGetUUID", part)), parent=handle)
            for part in instances
        ]
    return [Device(handle, decoded(nvml.call("DeviceGetUUID", handle)))]
