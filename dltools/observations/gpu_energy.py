"""Divides the energy that GPUs have used among the containers on them.

A GPU counts its joules. Those between two samples are divided among the containers by what each
used of it then. What it draws while nobody uses it stays the host's: the least power that was seen
while it was idle, all the time; and all that cannot be divided, since somebody's use is unknown.
Where it was never idle nothing tells that power, and the containers have it too. MIG instances have
only their GPU's counter, and their use is unknown: nobody is given theirs. All of it is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dltools.notation.times import MICRO
from dltools.observations.schema import Kind
from dltools.observations.table import integers, is_one_of, reals, texts

if TYPE_CHECKING:
    import pyarrow as pa

_USED = 0.05
"""A GPU is idle while less of it is used (ours)."""

Joules = dict[tuple[str, int], dict[str, float]]
"""Counters of energy by GPU, for each host and time (microseconds)."""


def read_joules(table: pa.Table) -> Joules:
    """Return what the GPUs of a recording's rows have counted."""
    joules: Joules = {}
    rows = table.filter(is_one_of(table.column("kind"), (Kind.GPU,)))
    names = (texts(rows, name) for name in ("host", "container_id", "gpu_uuid"))
    counts = reals(rows, "gpu_energy_joules")
    for host, container, gpu, micros, count in zip(
        *names, integers(rows, "time"), counts, strict=True
    ):
        if gpu and not container and not gpu.startswith("MIG-") and math.isfinite(count):
            joules.setdefault((host, micros), {})[gpu] = count
    return joules


@dataclass(slots=True)
class GpuEnergy:
    """The energy of one GPU: the joules that it has used in all, its newest count and when that was
    (microseconds), the least power (W) that it drew while nobody used it (infinity: unknown); and
    by container id the joules and the seconds of the samples in which it was used, divided by
    use."""

    joules: float = 0.0
    count: float = math.nan
    counted_at: int = 0
    idle_watts: float = math.inf
    shares: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, micros: int, count: float, uses: Mapping[str, float]) -> None:
        """Add a sample: the count at a time, and what each container has used since the sample
        before, as a part of the GPU. NaN is unknown; a count that falls begins anew."""
        drawn, span_s = count - self.count, (micros - self.counted_at) / MICRO
        self.count, self.counted_at = count, micros
        if not drawn >= 0 or span_s <= 0:
            return
        self.joules += drawn
        total = math.fsum(uses.values())
        if total < _USED:
            self.idle_watts = min(self.idle_watts, drawn / span_s)
        elif math.isfinite(total):
            for key, use in uses.items():
                joules, seconds = self.shares.get(key, (0.0, 0.0))
                part = use / total
                self.shares[key] = joules + part * drawn, seconds + part * span_s

    def by_container(self) -> dict[str, float]:
        """Return the joules of each container."""
        idle = self.idle_watts if math.isfinite(self.idle_watts) else 0.0
        return {
            key: max(0.0, joules - idle * seconds) for key, (joules, seconds) in self.shares.items()
        }
