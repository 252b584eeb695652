"""What a job's effort counts in: its GPU seconds, and what an epoch or a step takes.

Each `ContainerHistory` has one `GpuSeconds`, and an `EpochCost` where labels say how long it
trains. All rules are ours.

GPU seconds are the sum, over the GPUs that a job holds, of the share of time in which it had a
kernel there times that time. They count from the first sample at which a use is known, and CPU
seconds count before: a job whose use is never known stays with these. Later a use that is unknown
counts as the last one known on that GPU, and as none where there was none.

The effort before the first report is start-up as well, so only what lies between two reports says
what an epoch takes. A job that competes uses CPU time without getting on, so the least of the
newest intervals is nearest to what it needs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dltools.notation.times import MICRO
from dltools.observations.host_samples import GpuUse

GPU_USED = 0.05
"""Share of the time from which on a GPU is in use (ours)."""


@dataclass(slots=True)
class GpuSeconds:
    """The GPU seconds of one run of a job.

    `since`: from when they count (microseconds), None where CPU seconds count. `samples`:
    (microseconds, GPU seconds since then). `gpus`: the GPUs that it holds, and the newest use of
    each, with the last share that was known and the most memory that it has held.
    """

    since: int | None = None
    samples: list[tuple[int, float]] = field(default_factory=list)
    gpus: Mapping[str, GpuUse] = field(default_factory=dict)

    def add(self, time: int, uses: Mapping[str, GpuUse]) -> bool:
        """Take a sample: the job's use of the GPUs that it holds since the one before. Tell whether
        its GPU seconds count from now on."""
        self.gpus = {gpu: _after(self.gpus.get(gpu), use) for gpu, use in sorted(uses.items())}
        if self.since is None:
            if not any(use.ratio >= GPU_USED for use in uses.values()):
                return False
            self.since, self.samples = time, [(time, 0.0)]
            return True
        before, used = self.samples[-1]
        if time > before:
            known = [use.ratio for use in self.gpus.values() if not math.isnan(use.ratio)]
            self.samples.append((time, used + math.fsum(known) * (time - before) / MICRO))
        return False

    def clone(self) -> GpuSeconds:
        """Return a copy that shares nothing that changes."""
        return replace(self, samples=self.samples[:])


def value_at(samples: Sequence[tuple[int, float]], time: int) -> float:
    """Return a counter's value at a time, on the straight line between its samples; before the
    first it is that one, and 0 where there is none."""
    at = bisect.bisect_left(samples, (time,))
    if at == 0:
        return samples[0][1] if samples else 0.0
    if at == len(samples):
        return samples[-1][1]
    (t0, c0), (t1, c1) = samples[at - 1], samples[at]
    return c0 + (c1 - c0) * (time - t0) / (t1 - t0)


def _after(before: GpuUse | None, use: GpuUse) -> GpuUse:
    if before is None:
        return use
    ratio = before.ratio if math.isnan(use.ratio) else use.ratio
    memory = use.memory
    if memory is not None and before.memory is not None:
        memory = max(memory, before.memory)
    return use._replace(ratio=ratio, memory=memory)


_SHORTEST = 0.5
"""CPU seconds between two reports that are compared: less is lost in the sampling."""

_NEWEST = 8
"""Intervals that count: an epoch may become longer."""


@dataclass(frozen=True, slots=True)
class EpochCost:
    """The newest report that closed an interval: its `position` (epoch or step), the CPU seconds
    by then, how far the interval went (`advance`), and the CPU seconds for each unit in the newest
    intervals."""

    position: float
    work: float
    advance: float = 0.0
    needs: tuple[float, ...] = ()

    def after(self, position: float, work: float) -> EpochCost:
        """Return the cost after a report; training that begins anew tells none yet."""
        if position < self.position / 2:
            return EpochCost(position, work)
        if position <= self.position or work - self.work < _SHORTEST:
            return self
        advance = position - self.position
        needs = (*self.needs, (work - self.work) / advance)
        return EpochCost(position, work, advance, needs[-_NEWEST:])

    def left(self, total: float, newest: float, attained: float) -> float | None:
        """Return the CPU seconds that are left to a total, None before two reports.

        `newest` is the newest position; `attained` the CPU seconds so far, which count for one
        more interval at most.
        """
        if not self.needs:
            return None
        need = min(self.needs)
        since = min(max(0.0, attained - self.work), need * self.advance)
        return max(0.0, min(need * (total - newest), need * (total - self.position) - since))
