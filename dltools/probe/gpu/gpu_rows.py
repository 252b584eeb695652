"""Samples a host's GPUs: a row for each GPU, and one for each container on it.

`counters` asks `Gpus` at each sample. NVML names processes; their cgroups name the containers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dltools.engine.kernel_reading import ROOT, read_text
from dltools.notation.times import MICRO
from dltools.observations.device_rows import device_cells, use_in
from dltools.observations.host_samples import DeviceUse
from dltools.observations.table import Row
from dltools.probe.gpu.nvml import (
    Device,
    LostError,
    Nvml,
    driver_present,
    known_bytes,
    open_devices,
)

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def container_of(cgroup_text: str, places: Mapping[str, str] = {}) -> str | None:
    """Return the container id in the text of a /proc/PID/cgroup, None if there is none.

    It is the first word of 64 digits in a path: docker/ID, docker-ID.scope, kubepods/.../ID. Of two
    nested containers it is the outer one, which the engine knows. `places`: by path, the ids of
    containers whose paths do not contain their ids.
    """
    for line in cgroup_text.splitlines():
        path = line.split(":", 2)[-1]
        if places and (above := [place for place in places if f"{path}/".startswith(f"{place}/")]):
            return places[max(above, key=len)]
        if match := _ID.search(path):
            return match[0]
    return None


def owners(
    pids: Iterable[int], root: Path = ROOT, places: Mapping[str, str] = {}
) -> Mapping[int, str]:
    """Return the container ids of the processes that are in a container."""
    ids = {pid: container_of(read_text(f"{root}/proc/{pid}/cgroup"), places) for pid in set(pids)}
    return {pid: id_ for pid, id_ in ids.items() if id_ is not None}


OwnersOf = Callable[[Iterable[int]], Mapping[int, str]]
"""Returns the ids of the containers that processes are in."""

_RETRY_S = 60.0


class Gpus:
    """The GPUs of this host. `sample` never raises: `gap` says why values are missing."""

    def __init__(self, owners_of: OwnersOf = owners) -> None:
        """Without a driver there are no GPUs, and NVML is not loaded."""
        self.owners_of = owners_of
        self._nvml: Nvml | None = None
        self._devices: list[Device] = []
        self._tried = float("-inf")
        self.count: int | None = 0
        self.gap: str | None = None

    def sample(self, now: float) -> list[Row]:
        """Return the rows of kind `gpu`, without time and host.

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
                rows += self._rows(nvml, device, now)
            except LostError as error:
                is_lost = True
                rows.append({"kind": "gpu", "gpu_uuid": device.uuid, "gap": f"GPU lost: {error}"})
        if is_lost and now - self._tried >= _RETRY_S:
            nvml.close()  # the next sample starts again: the GPU may have come back
            self._nvml, self._devices, self._tried = None, [], float("-inf")
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
            devices = open_devices(nvml)
        except LostError as error:
            self.count, self.gap = None, f"NVML: {error}"
            return None
        self._nvml, self._devices = nvml, [device for opened in devices for device in opened or ()]
        self.count, unopened = len(devices), devices.count(None)
        self.gap = f"NVML: {unopened} of {self.count} GPUs cannot be opened" if unopened else None
        return nvml

    def _rows(self, nvml: Nvml, device: Device, now: float) -> Iterator[Row]:
        """Yield the row of a GPU, and those of the containers on it."""
        whole = _whole_row(nvml, device)
        uses = uses_by_container(nvml, device, self.owners_of, now)
        yield whole
        alone = whole["gpu_utilization_ratio"] if len(uses) == 1 else None
        for id_, use in sorted(uses.items()):
            yield _container_row(whole, id_, use, alone, "MIG" if device.parent else "shared GPU")


def _whole_row(nvml: Nvml, device: Device) -> Row:
    memory = nvml.memory(device.handle)
    rates = nvml.call("DeviceGetUtilizationRates", device.handle)
    power = nvml.call("DeviceGetPowerUsage", device.board)
    energy = nvml.call("DeviceGetTotalEnergyConsumption", device.board)
    ratio = math.nan if rates is None or rates.gpu > 100 else rates.gpu / 100
    reason = "not measured for MIG instances" if device.parent else "not supported"
    gaps = ["unified memory: the host's"] if memory.is_unified else []
    gaps += [f"utilisation: {reason}"] if rates is None else []
    return {
        **device_cells(device.uuid, DeviceUse(ratio, memory.used, memory.limit)),
        "gpu_power_watts": None if power is None else power / 1000,
        "gpu_energy_joules": None if energy is None else energy / 1000,
        "gap": "; ".join(gaps) or None,
    }


def _container_row(whole: Row, id_: str, use: DeviceUse, alone: float | None, what: str) -> Row:
    """Return the row of a container on a GPU. `alone`: the utilisation of the GPU if no other
    container uses it, else None. `what`: what the GPU is, should its use be unknown."""
    own = use_in(whole)._replace(memory=use.memory, ratio=use.ratio if alone is None else alone)
    gaps = ["memory by process: not available"] if use.memory is None else []
    gaps += [f"{what}: utilisation by process not available"] if math.isnan(own.ratio) else []
    return {
        **device_cells(whole["gpu_uuid"], own),
        "container_id": id_,
        "gpu_sm_ratio": None if math.isnan(use.ratio) else use.ratio,
        "gap": "; ".join(gaps) or None,
    }


def uses_by_container(
    nvml: Nvml, device: Device, owners_of: OwnersOf, now: float
) -> dict[str, DeviceUse]:
    """Return the use of a GPU by container at a time in seconds. Processes that have ended do not
    count."""
    sizes: dict[int, int | None] = {}
    for kind in ("Compute", "Graphics"):
        for process in nvml.call(f"DeviceGet{kind}RunningProcesses", device.handle) or ():
            sizes[process.pid] = known_bytes(process.usedGpuMemory)
    ratios = _ratios(nvml, device, now)
    uses: dict[str, DeviceUse] = {}
    for pid, id_ in owners_of(sizes).items():
        use = DeviceUse(math.nan if ratios is None else ratios.get(pid, 0.0), sizes[pid])
        uses[id_] = uses[id_].joined(use) if id_ in uses else use
    return uses


_AHEAD_US = 120 * MICRO
"""How much later a utilisation sample may be than the newest known one, beyond the time that has
passed since that was read (us); one that is later still is impossible."""


def _ratios(nvml: Nvml, device: Device, now: float) -> dict[int, float] | None:
    """Return each process's mean share of multiprocessors since the last call; None for unknown."""
    if device.parent is not None:
        return None
    is_first = device.seen == 0
    samples = nvml.process_samples(device.handle, device.seen)
    if samples is None:
        return None
    latest = device.seen + round((now - device.seen_at) * MICRO) + _AHEAD_US
    good = [
        sample
        for sample in samples
        if _is_credible(sample) and (is_first or device.seen < sample.timeStamp <= latest)
    ]
    if not good:
        return None if samples or is_first else {}
    newest = max(sample.timeStamp for sample in good)
    oldest = newest - MICRO if is_first else device.seen  # the first call gives old ones
    device.seen, device.seen_at = newest, now
    shares: dict[int, list[float]] = {}
    for sample in good:
        if sample.timeStamp >= oldest:
            shares.setdefault(sample.pid, []).append(sample.smUtil / 100)
    return {pid: sum(values) / len(values) for pid, values in shares.items()}


def _is_credible(sample: Any) -> bool:
    """Tell whether a utilisation sample may be true, but for its time.

    NVML keeps some seconds of samples, also of processes that have ended. After a process ends some
    samples are impossible: shares over 100 %, process 0, times in the future.
    """
    return bool(sample.pid > 0 and 0 <= sample.smUtil <= 100 and sample.timeStamp > 0)
