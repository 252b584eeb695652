"""Samples of a host's GPUs: a row for each GPU, and one for each container on it."""

from __future__ import annotations

from collections.abc import Iterator

from dltools.observations.table import Row
from dltools.probe.gpu.devices import Device, open_devices
from dltools.probe.gpu.nvml import LostError, Nvml, driver_present, known
from dltools.probe.gpu.owners import owners
from dltools.probe.gpu.processes import Owners, Use, uses_by_container

_RETRY_S = 60.0


class Gpus:
    """The GPUs of this host. `sample` never raises: `gap` says why something is missing."""

    def __init__(self, owners_of: Owners = owners) -> None:
        """Without a driver there are no GPUs, and NVML is not loaded."""
        self._owners_of = owners_of
        self._nvml: Nvml | None = None
        self._devices: list[Device] = []
        self._tried = float("-inf")
        self.count: int | None = 0
        self.gap: str | None = None

    def sample(self, now: float) -> list[Row]:
        """Return the rows of kind `gpu`, less time and host.

        `now` is a time in seconds on any clock: a lost GPU is tried again after a minute. A row
        without a container is the GPU as a whole. A row with a container says what its processes
        use: `gpu_memory_used_bytes` is their sum, `gpu_sm_ratio` the mean share of multiprocessors
        that they kept busy since the last sample, and `gpu_utilization_ratio` the same, or the
        GPU's own if no other container uses it.
        """
        nvml = self._nvml or self._start(now)
        if nvml is None:
            return []
        rows: list[Row] = []
        is_lost = False
        for device in self._devices:
            nvml.gaps.clear()
            try:
                rows += self._rows(nvml, device)
            except LostError as error:
                is_lost = True
                rows.append({"kind": "gpu", "gpu_uuid": device.uuid, "gap": f"GPU lost: {error}"})
        if is_lost and now - self._tried >= _RETRY_S:
            self._stop()  # the next sample starts again: the GPU may have come back
        return rows

    def _start(self, now: float) -> Nvml | None:
        if now - self._tried < _RETRY_S:
            return None
        self._tried = now
        if not driver_present():
            self.count, self.gap = 0, None
            return None
        try:
            nvml = Nvml()
            found = open_devices(nvml)
        except LostError as error:
            self.count, self.gap = None, f"NVML: {error}"
            return None
        self._nvml, self._devices, self.count = nvml, found.opened, found.count
        unopened = f"NVML: {found.unopened_count} of {found.count} GPUs cannot be opened"
        self.gap = unopened if found.unopened_count else None
        return nvml

    def _stop(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
        self._nvml, self._devices, self._tried = None, [], float("-inf")

    def _rows(self, nvml: Nvml, device: Device) -> Iterator[Row]:
        """Yield the row of a GPU, and those of the containers on it."""
        whole = _whole_row(nvml, device)
        uses = uses_by_container(nvml, device, self._owners_of)
        yield whole
        alone = whole["gpu_utilization_ratio"] if len(uses) == 1 else None
        for id_, use in sorted(uses.items()):
            yield _container_row(whole, id_, use, alone)


def _whole_row(nvml: Nvml, device: Device) -> Row:
    memory = nvml.call("DeviceGetMemoryInfo", device.handle)
    rates = nvml.call("DeviceGetUtilizationRates", device.handle)
    power = nvml.call("DeviceGetPowerUsage", device.board)
    energy = nvml.call("DeviceGetTotalEnergyConsumption", device.board)
    reason = "not measured for MIG instances" if device.parent else "not supported"
    return {
        "kind": "gpu",
        "gpu_uuid": device.uuid,
        "gpu_memory_limit_bytes": None if memory is None else known(memory.total),
        "gpu_utilization_ratio": None if rates is None or rates.gpu > 100 else rates.gpu / 100,
        "gpu_memory_used_bytes": None if memory is None else known(memory.used),
        "gpu_power_watts": None if power is None else power / 1000,
        "gpu_energy_joules": None if energy is None else energy / 1000,
        "gap": f"utilisation: {reason}" if rates is None else None,
    }


def _container_row(whole: Row, id_: str, use: Use, alone: float | None) -> Row:
    """Return the row of a container on a GPU; `alone` is the utilisation of a GPU that no other
    container uses."""
    ratio = use.ratio if alone is None else alone
    gaps = []
    if use.memory is None:
        gaps.append("memory by process: not available")
    if ratio is None:
        gaps.append("shared GPU: utilisation by process not available")
    return {
        "kind": "gpu",
        "gpu_uuid": whole["gpu_uuid"],
        "gpu_memory_limit_bytes": whole["gpu_memory_limit_bytes"],
        "container_id": id_,
        "gpu_utilization_ratio": ratio,
        "gpu_sm_ratio": use.ratio,
        "gpu_memory_used_bytes": use.memory,
        "gap": "; ".join(gaps) or None,
    }
