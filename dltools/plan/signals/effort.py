"""A job's effort: its GPU seconds, and the effort that an epoch or a step takes.

Each `ContainerHistory` has one `GpuSeconds`, and an `EpochCost` if labels say how long it trains.
All rules are ours.

GPU seconds are the sum, over the GPUs that a job holds, of time multiplied by the share of it in
which the job had a kernel there. They count from the first sample with a known use. Before that,
and for a job whose use is never known, CPU seconds count. Later, an unknown use is taken to be the
last known use of that GPU, or none.

The effort before the first report includes start-up, so the cost of an epoch is measured between
two reports. A job that competes wastes CPU time, so the least of the newest costs is nearest to
what it needs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dltools.notation.times import MICRO
from dltools.observations.host_samples import GpuUse

GPU_USED = 0.05
"""A GPU is in use if it is busy for this share of the time or more (ours)."""


@dataclass(slots=True)
class GpuSeconds:
    """The GPU seconds of one run of a job.

    `since`: the time from which they count (microseconds), None while CPU seconds count.
    `samples`: (microseconds, GPU seconds since then). `gpus`: the newest use of each GPU that it
    holds, with the last known share and the most memory that it has held.
    """

    since: int | None = None
    samples: list[tuple[int, float]] = field(default_factory=list)
    gpus: Mapping[str, GpuUse] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError where they begin without a sample, or have one before they begin."""
        if (self.since is None) == bool(self.samples):
            raise ValueError("GPU seconds begin where they have no samples")

    def add(self, time: int, uses: Mapping[str, GpuUse]) -> bool:
        """Add a sample: how the job has used the GPUs that it holds since the last sample. Tell
        whether its GPU seconds begin to count with it."""
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


@dataclass(frozen=True, slots=True)
class GpuLever:
    """How a job is brought to its share of GPUs.

    `since`: when that was set (microseconds), and what the job had had by then: `effort` (GPU s),
    `attained` (CPU s) and `position` (steps, or epochs). `asked`: the GPUs that it shall have, such
    as 0.3; `had`: what it had by the lever's last look, None before one. `most`: the GPUs that it
    uses at most while it runs, None where it uses what it gets. `cost`: the GPU seconds of a step,
    None if unknown; `gain`: how many times what its slices say it had. `by_duty`: it runs for a
    `part` of the time; else its quota of CPUs is `cpus`, None for none.
    """

    since: int
    effort: float
    attained: float
    position: float | None = None
    asked: float = 0.0
    had: float | None = None
    most: float | None = None
    cost: float | None = None
    gain: float = 1.0
    part: float = 1.0
    cpus: float | None = None
    by_duty: bool = True


def value_at(samples: Sequence[tuple[float, float]], time: float) -> float:
    """Return a value at a time, interpolated between samples in order of time. Before the first
    sample it is the first value, after the last the last; without samples it is 0."""
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
"""Least effort (CPU seconds) between two reports that are compared: sampling is too coarse for
less."""

_START_UP = 10.0
"""CPU seconds of which the start-up of a job is a small part."""

_NEWEST = 8
"""Number of newest intervals that count: later epochs may take longer."""


class EpochCost(NamedTuple):
    """The cost of an epoch or a step, by intervals between reports.

    Of the newest interval: `position` is its last epoch or step, `work` the CPU seconds up to then,
    `advance` its length in epochs or steps. `needs`: CPU seconds per epoch or step in each of the
    newest intervals.
    """

    position: float
    work: float
    advance: float = 0.0
    needs: tuple[float, ...] = ()

    def after(self, position: float, work: float) -> EpochCost:
        """Return the cost after a report. It is unknown again if training has begun anew."""
        if position < self.position / 2:
            return EpochCost(position, work)
        if position <= self.position or work - self.work < _SHORTEST:
            return self
        advance = position - self.position
        needs = (*self.needs, (work - self.work) / advance)
        return EpochCost(position, work, advance, needs[-_NEWEST:])

    def runs_on(self, attained: float) -> bool:
        """Tell whether a job has had more since its newest report than another would take."""
        longest = max(self.needs, default=0.0) * self.advance
        return attained - self.work > max(_START_UP, 2 * longest)

    def left(self, total: float, newest: float, attained: float) -> float | None:
        """Return the CPU seconds that are left until the position `total`, None if unknown.

        `newest` is the newest position; `attained` the CPU seconds so far. Those since the newest
        report count as one more interval at most. Before two reports the cost is the mean of all
        that is done, with the start-up, once this is a small part of it.
        """
        if not self.needs and (self.position <= 0 or self.work < _START_UP):
            return None
        need = min(self.needs, default=self.work / self.position)
        since = min(max(0.0, attained - self.work), need * (self.advance or self.position))
        return max(0.0, min(need * (total - newest), need * (total - self.position) - since))
