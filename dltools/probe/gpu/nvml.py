"""One wrapper round every call to NVML: a value, or why there is none; never an exception.

NVML has many ways to fail that are no failure of ours: a call that a board does not know, a GPU
that fell off the bus, a process that ended between two calls, a driver updated under our feet.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

DRIVER = (Path("/dev/nvidiactl"), Path("/proc/driver/nvidia/version"))

NOT_AVAILABLE = (1 << 64) - 1
"""What NVML says for a size that it does not know."""

_LOST = ("GPU_IS_LOST", "RESET_REQUIRED", "UNKNOWN", "UNINITIALIZED", "GPU_NOT_FOUND",
         "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH")  # fmt: skip


class LostError(Exception):
    """The GPU, or NVML as a whole, is no longer there; the message says how NVML puts it."""


def driver_present() -> bool:
    """Tell whether this machine has NVIDIA's driver at all; without it NVML is not even loaded."""
    return any(path.exists() for path in DRIVER)


class Nvml:
    """NVML, loaded and initialised. `gaps` gathers why values are missing, call by call."""

    def __init__(self) -> None:
        """Raises `LostError` where NVML cannot be had."""
        import pynvml

        self._nvml: ModuleType = pynvml
        self._lost = {
            getattr(pynvml, f"NVML_ERROR_{name}")
            for name in _LOST
            if hasattr(pynvml, f"NVML_ERROR_{name}")
        }
        self.gaps: dict[str, str] = {}
        try:
            pynvml.nvmlInit()
        except Exception as error:
            raise LostError(_words(error)) from error

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what `nvml<name>` returns, None where it cannot say; `gaps` then has the reason.

        Raises `LostError` where the GPU, or NVML, is gone.
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

    def close(self) -> None:
        """Shut NVML down."""
        try:
            self._nvml.nvmlShutdown()
        except Exception:
            return


def known(size: Any) -> int | None:
    """Return a size in bytes, None where NVML has none."""
    return int(size) if isinstance(size, int) and 0 <= size < NOT_AVAILABLE else None


def text(value: Any) -> str:
    """Return a name; older bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:80] or type(error).__name__
