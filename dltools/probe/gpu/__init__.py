"""GPUs by NVML: what each does, and which container's processes are on it."""

from dltools.probe.gpu.collector import Gpus

__all__ = ["Gpus"]
