"""How many GPUs the node has, by NVML."""

from __future__ import annotations

from pathlib import Path

_DRIVER = (Path("/dev/nvidiactl"), Path("/proc/driver/nvidia/version"))


def count() -> tuple[int | None, str | None]:
    """Return the number of GPUs, or None and why it is not known.

    Without a driver it is 0, and NVML is not even loaded.
    """
    if not any(path.exists() for path in _DRIVER):
        return 0, None
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, f"NVML: {error}"
    try:
        return int(pynvml.nvmlDeviceGetCount()), None
    except pynvml.NVMLError as error:
        return None, f"NVML: {error}"
    finally:
        pynvml.nvmlShutdown()
