"""The GPUs that a job holds: how it uses them, and how it is brought to its share of them.

Each `Use` has one `GpuUse`. All rules are ours.

GPU seconds are the sum, over the GPUs that a job holds, of time multiplied by the share of it in
which the job had a kernel there. They count from the first sample with a known use. Before that,
and for a job whose use is never known, CPU seconds count. Later, an unknown use is taken to be the
last known use of that GPU, or none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dltools.notation.times import MICRO
from dltools.observations.host_samples import DeviceUse

GPU_USED = 0.05
"""A GPU is in use if it is busy for this share of the time or more (ours)."""


@dataclass(frozen=True, slots=True)
class GpuLever:
    """How a job is brought to its share of GPUs: it runs for a part of the time, or has a quota of
    CPUs."""

    since: int
    """When that was set (microseconds)."""

    effort: float
    """The GPU seconds that the job had had by then."""

    attained: float
    """The CPU seconds that the job had had by then."""

    position: float | None = None
    """Where the job was then: steps, or epochs; None if it tells neither."""

    asked: float = 0.0
    """The GPUs that it shall have, such as 0.3."""

    had: float | None = None
    """The GPUs that it had by the lever's last look, None before one."""

    most: float | None = None
    """The GPUs that it uses at most while it runs, None where it uses what it gets."""

    cost: float | None = None
    """The GPU seconds of a step, None if unknown."""

    gain: float = 1.0
    """How many times what its slices say it had."""

    part: float = 1.0
    """The part of the time for which it runs, 0 to 1; 1 where it has a quota."""

    cpus: float | None = None
    """Its quota of CPUs in cores, None for none."""

    by_duty: bool = True
    """Whether it runs for a part of the time."""


@dataclass(slots=True)
class GpuUse:
    """The use of GPUs by one run of a job. Times are microseconds.

    `since`: the time from which its GPU seconds count, None while CPU seconds count. `samples`:
    (time, GPU seconds since then). `gpus`: the newest known use of each GPU that it holds.
    `used_at`: when it was last seen to use one, or to hold one of unknown use. `lever`: how it is
    brought to its share, None where it is not.
    """

    since: int | None = None
    samples: list[tuple[int, float]] = field(default_factory=list)
    gpus: Mapping[str, DeviceUse] = field(default_factory=dict)
    used_at: int | None = None
    lever: GpuLever | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where they begin without a sample, or have one before they begin."""
        if (self.since is None) == bool(self.samples):
            raise ValueError("GPU seconds begin where they have no samples")

    def add(self, time: int, uses: Mapping[str, DeviceUse] | None) -> bool:
        """Add a sample: how the job has used the GPUs that it holds since the last sample, None if
        it holds none. Tell whether its GPU seconds begin to count with it: its effort counts in
        another unit then."""
        uses = uses or {}
        if any(not use.ratio < GPU_USED for use in uses.values()):
            self.used_at = time
        self.gpus = {gpu: _after(self.gpus.get(gpu), use) for gpu, use in sorted(uses.items())}
        if self.since is None:
            if not any(use.ratio >= GPU_USED for use in uses.values()):
                return False
            self.since, self.samples = time, [(time, 0.0)]
            return True
        before, used = self.samples[-1]
        if time > before:
            ratios = [use.ratio for use in self.gpus.values() if not math.isnan(use.ratio)]
            self.samples.append((time, used + math.fsum(ratios) * (time - before) / MICRO))
        return False


def _after(before: DeviceUse | None, use: DeviceUse) -> DeviceUse:
    return use if before is None or not math.isnan(use.ratio) else before
