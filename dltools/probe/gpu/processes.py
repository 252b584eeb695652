"""What the processes of each container do on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dltools.notation.times import MICRO
from dltools.probe.gpu.devices import Device
from dltools.probe.gpu.nvml import Nvml, known

_LONGEST_US = 120 * MICRO
"""A utilisation sample further ahead of the newest known one than this is impossible."""

Owners = Callable[[Iterable[int]], Mapping[int, str]]
"""Returns the ids of the containers that processes are in."""


@dataclass(slots=True)
class Use:
    """What the processes of one container use of one GPU: bytes, and the share of multiprocessors
    that they kept busy; None for unknown."""

    memory: int | None = 0
    ratio: float | None = 0.0

    def add(self, memory: int | None, ratio: float | None) -> None:
        """Add a process."""
        self.memory = None if self.memory is None or memory is None else self.memory + memory
        self.ratio = None if self.ratio is None or ratio is None else min(1.0, self.ratio + ratio)


def uses_by_container(nvml: Nvml, device: Device, owners_of: Owners) -> dict[str, Use]:
    """Return what containers use; a process that has ended is not counted."""
    sizes: dict[int, int | None] = {}
    for kind in ("Compute", "Graphics"):
        for process in nvml.call(f"DeviceGet{kind}RunningProcesses", device.handle) or ():
            sizes[process.pid] = known(process.usedGpuMemory)
    ratios = _ratios(nvml, device)
    uses: dict[str, Use] = {}
    for pid, id_ in owners_of(sizes).items():
        use = uses.setdefault(id_, Use())
        use.add(sizes[pid], None if ratios is None else ratios.get(pid, 0.0))
    return uses


def _ratios(nvml: Nvml, device: Device) -> dict[int, float] | None:
    """Return each process's mean share of multiprocessors since the last call; None for unknown."""
    if device.parent is not None:
        return None
    is_first = device.seen == 0
    samples = nvml.call("DeviceGetProcessUtilization", device.handle, device.seen)
    if samples is None:  # NotFound: nothing ran in between
        is_idle = "ot found" in nvml.gaps.get("DeviceGetProcessUtilization", "").lower()
        return {} if is_idle and not is_first else None
    good = [sample for sample in samples if _is_credible(sample, device.seen)]
    if not good:
        return None if samples or is_first else {}
    newest = max(sample.timeStamp for sample in good)
    oldest = newest - MICRO if is_first else device.seen  # the first call gives old ones
    device.seen = newest
    shares: dict[int, list[float]] = {}
    for sample in good:
        if sample.timeStamp >= oldest:
            shares.setdefault(sample.pid, []).append(sample.smUtil / 100)
    return {pid: sum(values) / len(values) for pid, values in shares.items()}


def _is_credible(sample: Any, seen: int) -> bool:
    """Tell whether a utilisation sample may be true and is new.

    NVML keeps some seconds of samples, also of processes that have ended. After a process ends some
    samples are impossible: shares over 100 %, process 0, times in the future.
    """
    is_near = seen == 0 or sample.timeStamp - seen <= _LONGEST_US
    return bool(
        sample.pid > 0 and 0 <= sample.smUtil <= 100 and sample.timeStamp > seen and is_near
    )
