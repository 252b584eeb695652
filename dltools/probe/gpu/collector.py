"""Samples of a host's GPUs: a row per GPU as a whole, and one per container on each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.observations.table import Row
from dltools.probe.gpu.nvml import LostError, Nvml, driver_present, known, text
from dltools.probe.gpu.owners import owners

_RETRY_S = 60.0
_MICRO = 1_000_000
_LONGEST_US = 120 * _MICRO
"""Utilisation samples further ahead of the newest known one than this are rubbish."""


@dataclass(slots=True)
class _Device:
    """A GPU, or a MIG instance (`parent` then is its GPU's handle)."""

    handle: Any
    uuid: str
    parent: Any = None
    seen: int = 0  # NVML's time stamp of the newest utilisation sample, microseconds


@dataclass(slots=True)
class _Use:
    """What the processes of one container do on one GPU."""

    memory: int | None = 0
    ratio: float | None = 0.0
    pids: set[int] = field(default_factory=set)


class Gpus:
    """The GPUs of this host. `sample` never raises: what is missing has a reason in `gap`."""

    def __init__(self, owners_of: Callable[[Iterable[int]], Mapping[int, str]] = owners) -> None:
        """Without a driver there are no GPUs, and NVML is not loaded."""
        self._owners_of = owners_of
        self._nvml: Nvml | None = None
        self._devices: list[_Device] = []
        self._tried = float("-inf")
        self.count: int | None = 0
        self.gap: str | None = None

    def sample(self, now: float) -> list[Row]:
        """Return the rows of kind `gpu`, less time and host.

        `now` is a time in seconds on any clock: what was lost is tried again after a minute. A row
        with a container holds what its processes use: `gpu_memory_used_bytes` their sum,
        `gpu_sm_ratio` the mean share of multiprocessors that they kept busy since the sample
        before, `gpu_utilization_ratio` the same, or the GPU's own where the container is alone on
        it. A row without a container is the GPU as a whole.
        """
        if self._nvml is None and not self._start(now):
            return []
        assert self._nvml is not None
        rows: list[Row] = []
        lost = []
        for device in self._devices:
            self._nvml.gaps.clear()
            try:
                rows += self._rows(self._nvml, device)
            except LostError as error:
                lost.append(str(error))
                rows.append({"kind": "gpu", "gpu_uuid": device.uuid, "gap": f"GPU lost: {error}"})
        if lost and now - self._tried >= _RETRY_S:
            self._stop()  # and begin anew with the next sample: it may have come back
        return rows

    def _start(self, now: float) -> bool:
        if now - self._tried < _RETRY_S:
            return False
        self._tried = now
        if not driver_present():
            self.count, self.gap = 0, None
            return False
        try:
            nvml = Nvml()
            count = nvml.call("DeviceGetCount") or 0
            devices: list[_Device] = []
            unopened = 0
            for index in range(count):
                try:
                    opened = _open(nvml, index)
                except LostError:  # must not hide the others
                    opened = None
                devices += opened or []
                unopened += opened is None
        except LostError as error:
            self.count, self.gap = None, f"NVML: {error}"
            return False
        self._nvml, self._devices, self.count = nvml, devices, count
        self.gap = f"NVML: {unopened} of {count} GPUs cannot be opened" if unopened else None
        return True

    def _stop(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
        self._nvml, self._devices, self._tried = None, [], float("-inf")

    def _rows(self, nvml: Nvml, device: _Device) -> list[Row]:
        memory = nvml.call("DeviceGetMemoryInfo", device.handle)
        rates = nvml.call("DeviceGetUtilizationRates", device.handle)
        power = nvml.call("DeviceGetPowerUsage", device.parent or device.handle)
        energy = nvml.call("DeviceGetTotalEnergyConsumption", device.parent or device.handle)
        busy = None if rates is None or rates.gpu > 100 else rates.gpu / 100
        total = known(memory.total) if memory is not None else None
        common = {"kind": "gpu", "gpu_uuid": device.uuid, "gpu_memory_limit_bytes": total}
        gaps = []
        if rates is None:
            reason = "not measured for MIG instances" if device.parent else "not supported"
            gaps.append(f"utilisation: {reason}")
        whole = common | {
            "gpu_utilization_ratio": busy,
            "gpu_memory_used_bytes": known(memory.used) if memory is not None else None,
            "gpu_power_watts": None if power is None else power / 1000,
            "gpu_energy_joules": None if energy is None else energy / 1000,
            "gap": "; ".join(gaps) or None,
        }
        uses = self._uses(nvml, device)
        rows = [whole]
        for id_, use in sorted(uses.items()):
            alone = len(uses) == 1
            ratio = busy if alone and busy is not None else use.ratio
            reasons = []
            if use.memory is None:
                reasons.append("memory by process: not available")
            if ratio is None:
                reasons.append("shared GPU: utilisation by process not available")
            rows.append(
                common
                | {
                    "container_id": id_,
                    "gpu_utilization_ratio": ratio,
                    "gpu_sm_ratio": use.ratio,
                    "gpu_memory_used_bytes": use.memory,
                    "gap": "; ".join(reasons) or None,
                }
            )
        return rows

    def _uses(self, nvml: Nvml, device: _Device) -> dict[str, _Use]:
        """Return what the containers' processes use; a process that has ended is not there."""
        sizes: dict[int, int | None] = {}
        for kind in ("Compute", "Graphics"):
            for process in nvml.call(f"DeviceGet{kind}RunningProcesses", device.handle) or ():
                sizes[process.pid] = known(process.usedGpuMemory)
        ratios = self._ratios(nvml, device)
        uses: dict[str, _Use] = {}
        for pid, id_ in self._owners_of(sizes).items():
            use = uses.setdefault(id_, _Use())
            use.pids.add(pid)
            size = sizes[pid]
            use.memory = None if use.memory is None or size is None else use.memory + size
            if ratios is None or use.ratio is None:
                use.ratio = None
            else:
                use.ratio = min(1.0, use.ratio + ratios.get(pid, 0.0))
        return uses

    def _ratios(self, nvml: Nvml, device: _Device) -> dict[int, float] | None:
        """Return each process's mean share of multiprocessors since the last call; None for
        unknown.

        NVML keeps some seconds of samples, also of processes that have ended, and after such a
        death some that cannot be: shares over 100 %, process 0, times in the future.
        """
        if device.parent is not None:
            return None
        first = device.seen == 0
        samples = nvml.call("DeviceGetProcessUtilization", device.handle, device.seen)
        if samples is None:  # NotFound: nothing ran in between
            idle = "ot found" in nvml.gaps.get("DeviceGetProcessUtilization", "").lower()
            return {} if idle and not first else None
        good = [
            sample
            for sample in samples
            if sample.pid > 0
            and 0 <= sample.smUtil <= 100
            and sample.timeStamp > device.seen
            and (first or sample.timeStamp - device.seen <= _LONGEST_US)
        ]
        if not good:
            return None if samples or first else {}
        newest = max(sample.timeStamp for sample in good)
        device.seen = newest
        shares: dict[int, list[float]] = {}
        for sample in good:
            if not first or newest - sample.timeStamp <= _MICRO:  # the first call gives old ones
                shares.setdefault(sample.pid, []).append(sample.smUtil / 100)
        return {pid: sum(values) / len(values) for pid, values in shares.items()}


def _open(nvml: Nvml, index: int) -> list[_Device] | None:
    """Return a GPU, or its MIG instances where it is cut into such; None where it cannot be had."""
    handle = nvml.call("DeviceGetHandleByIndex", index)
    if handle is None:
        return None
    mode = nvml.call("DeviceGetMigMode", handle)
    if mode is not None and mode[0] == 1:
        instances = []
        for slot in range(nvml.call("DeviceGetMaxMigDeviceCount", handle) or 0):
            part = nvml.call("DeviceGetMigDeviceHandleByIndex", handle, slot)
            if part is not None:  # an empty slot otherwise
                instances.append(_Device(part, text(nvml.call("DeviceGetUUID", part)), handle))
        return instances
    return [_Device(handle, text(nvml.call("DeviceGetUUID", handle)))]
