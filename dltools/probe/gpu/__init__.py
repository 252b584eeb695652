"""GPUs, measured by NVML: what each does, and which containers use it."""

from dltools.probe.gpu.collector import Gpus

__all__ = ["Gpus"]
