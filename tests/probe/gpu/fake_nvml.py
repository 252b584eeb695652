"""A faked NVML: the functions, structures and errors of the bindings, scripted call by call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

ERRORS = {
    "UNINITIALIZED": 1,
    "INVALID_ARGUMENT": 2,
    "NOT_SUPPORTED": 3,
    "NO_PERMISSION": 4,
    "NOT_FOUND": 6,
    "INSUFFICIENT_SIZE": 7,
    "DRIVER_NOT_LOADED": 9,
    "TIMEOUT": 10,
    "LIBRARY_NOT_FOUND": 12,
    "FUNCTION_NOT_FOUND": 13,
    "GPU_IS_LOST": 15,
    "RESET_REQUIRED": 16,
    "LIB_RM_VERSION_MISMATCH": 18,
    "UNKNOWN": 999,
}
WORDS = {
    "NOT_FOUND": "Not Found",
    "NOT_SUPPORTED": "Not Supported",
    "GPU_IS_LOST": "GPU is lost",
    "LIB_RM_VERSION_MISMATCH": "RM has detected an NVML/RM version mismatch.",
}


class NVMLError(Exception):
    """As the bindings': `value` is NVML's code."""

    def __init__(self, name: str) -> None:
        self.value = ERRORS[name]
        super().__init__(WORDS.get(name, name.replace("_", " ").title()))


@dataclass
class Gpu:
    """A GPU: what its calls answer."""

    uuid: str | bytes
    utilization: int = 0
    memory: tuple[int, int] = (80 << 30, 1 << 30)  # total, used
    power_mw: int = 100_000
    energy_mj: int = 5_000_000
    processes: dict[int, int | None] = field(default_factory=dict)
    samples: list[tuple[int, int, int]] = field(default_factory=list)  # pid, time, smUtil
    mig: list[Gpu | None] | None = None
    faults: dict[str, str] = field(default_factory=dict)  # call -> error
    reserved: int = 0  # by the driver; its first call for sizes counts it as used
    is_old: bool = False  # its driver has that call alone


class FakeNvml:
    """Stands for the module `pynvml`; `faults` maps a call to the error that it raises."""

    def __init__(self, gpus: list[Gpu]) -> None:
        self.gpus = gpus
        self.faults: dict[str, str] = {}
        self.calls: list[str] = []
        self.inits = 0
        self.NVMLError, self.nvmlMemory_v2 = NVMLError, 0x02000028
        for name, code in ERRORS.items():
            setattr(self, f"NVML_ERROR_{name}", code)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            gpu = arguments[0] if arguments and isinstance(arguments[0], Gpu) else None
            fault = self.faults.get(name) or (gpu.faults.get(name) if gpu else None)
            if fault:
                raise NVMLError(fault)
            return getattr(self, f"_{name[4:]}")(*arguments)

        return call

    def _Init(self) -> None:
        self.inits += 1

    def _Shutdown(self) -> None:
        pass

    def _DeviceGetCount(self) -> int:
        return len(self.gpus)

    def _DeviceGetHandleByIndex(self, index: int) -> Gpu:
        return self.gpus[index]

    def _DeviceGetUUID(self, gpu: Gpu) -> str | bytes:
        return gpu.uuid

    def _DeviceGetMigMode(self, gpu: Gpu) -> list[int]:
        return [int(gpu.mig is not None)] * 2

    def _DeviceGetMaxMigDeviceCount(self, gpu: Gpu) -> int:
        return len(gpu.mig or [])

    def _DeviceGetMigDeviceHandleByIndex(self, gpu: Gpu, slot: int) -> Gpu:
        part = (gpu.mig or [])[slot]
        if part is None:
            raise NVMLError("NOT_FOUND")
        return part

    def _DeviceGetMemoryInfo(self, gpu: Gpu, version: int | None = None) -> Any:
        total, used = gpu.memory
        if version is None:
            return SimpleNamespace(total=total, used=used + gpu.reserved)
        if gpu.is_old:
            raise NVMLError("FUNCTION_NOT_FOUND")
        return SimpleNamespace(total=total, used=used, reserved=gpu.reserved)

    def _DeviceGetUtilizationRates(self, gpu: Gpu) -> Any:
        return SimpleNamespace(gpu=gpu.utilization, memory=0)

    def _DeviceGetPowerUsage(self, gpu: Gpu) -> int:
        return gpu.power_mw

    def _DeviceGetTotalEnergyConsumption(self, gpu: Gpu) -> int:
        return gpu.energy_mj

    def _DeviceGetComputeRunningProcesses(self, gpu: Gpu) -> list[Any]:
        return [SimpleNamespace(pid=p, usedGpuMemory=m) for p, m in gpu.processes.items()]

    def _DeviceGetGraphicsRunningProcesses(self, gpu: Gpu) -> list[Any]:
        return []

    def _DeviceGetProcessesUtilizationInfo(self, gpu: Gpu, since: int) -> list[Any]:
        """The newer call; its structures have more fields, and these."""
        return self._DeviceGetProcessUtilization(gpu, since)

    def _DeviceGetProcessUtilization(self, gpu: Gpu, since: int) -> list[Any]:
        found = [
            SimpleNamespace(pid=pid, timeStamp=at, smUtil=share)
            for pid, at, share in gpu.samples
            if at > since
        ]
        if not found:
            raise NVMLError("NOT_FOUND")
        return found
