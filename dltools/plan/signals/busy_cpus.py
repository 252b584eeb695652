"""How busy a host's CPUs are, and whether they are contested, from its own counters.

The number of threads does not show it: eight trainings may have 480 threads and keep only a
quarter of 64 CPUs busy. While CPUs are idle, no job waits for one, and ordering jobs gains nothing.
All bounds are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dltools.notation.resources import parse_cpus
from dltools.notation.times import MICRO

WINDOW_S = 10.0
"""CPUs stop being contested when their load over this many seconds is below the bound."""

_LEAST_S = 0.75
"""CPUs can be found contested only over this time (s) or longer."""

CONTESTED, CALM = 0.9, 0.8
"""CPUs become contested at the first share of busy CPUs, and stop being so below the second."""


class BusyCpus(NamedTuple):
    """The load of a host at its newest samples.

    `samples`: times (microseconds) and the CPU seconds that everything on the host had used, back
    to the begin of the window. `is_contested`: None where too little is known.
    """

    samples: tuple[tuple[int, float], ...] = ()
    is_contested: bool | None = None

    def after(
        self, times: Sequence[int], busy: Sequence[float], sizes: Sequence[float], cpus: float
    ) -> BusyCpus:
        """Return the load after new samples, in order of time: `busy` are CPU seconds, `sizes` the
        host's CPUs at each. An unknown size is that of the sample before; the first is `cpus`.

        A sample without a counter (NaN) is left out; a counter that falls starts a new record.
        """
        busy_cpus = self
        for time, seconds, size in zip(times, busy, sizes, strict=True):
            cpus = size if size > 0 else cpus
            if math.isfinite(seconds):
                busy_cpus = busy_cpus._after_one(time, seconds, cpus)
        return busy_cpus

    def _after_one(self, time: int, seconds: float, cpus: float) -> BusyCpus:
        if self.samples and (time <= self.samples[-1][0] or seconds < self.samples[-1][1]):
            return BusyCpus(((time, seconds),))
        kept = [*self.samples, (time, seconds)]
        while len(kept) > 2 and kept[1][0] <= time - round(WINDOW_S * MICRO):
            del kept[0]
        latest = time - round(_LEAST_S * MICRO)
        newest = next((sample for sample in reversed(kept[:-1]) if sample[0] <= latest), None)
        is_contested = self.is_contested
        if newest is not None and cpus > 0:
            is_busy = _share(newest, kept[-1], cpus) >= CONTESTED
            stays = is_contested is True and _share(kept[0], kept[-1], cpus) >= CALM
            is_contested = is_busy or stays
        return BusyCpus(tuple(kept), is_contested)

    def share(self, cpus: float) -> float | None:
        """Return the share of a host's CPUs that was busy over the window; None if unknown."""
        if len(self.samples) < 2 or cpus <= 0:
            return None
        return _share(self.samples[0], self.samples[-1], cpus)


def _share(begin: tuple[int, float], end: tuple[int, float], cpus: float) -> float:
    return (end[1] - begin[1]) * MICRO / (end[0] - begin[0]) / cpus


COMPETE = 0.05
"""Share of the CPUs from which on programs that are no jobs compete for them (ours)."""

_OTHERS_S = 4.0
"""The shortest time over which the use of others is measured (s)."""

_LITTLE, _STEADY = 0.1, 0.03
"""Where others use less than the one share of the CPUs, a change by less than the other is none
(ours): the engine's own work goes up and down, and settings would with it."""


class OthersUse(NamedTuple):
    """What programs that are no jobs use of a host's CPUs: the host's use less that of its jobs.

    It is measured while no job comes or goes: what a job used that has just ended would count as
    theirs.
    """

    share: float | None = None
    """Of all CPUs, 0 to 1; None while it is unknown."""

    at: int = 0
    """Since when the next one is measured (microseconds)."""

    rest_s: float = 0.0
    """The CPU seconds of all but the jobs up to then."""

    runs: tuple[str, ...] = ()
    """The runs of the jobs then."""

    def after(
        self, now: int, busy_s: float, attained: Mapping[str, float], cpus: float
    ) -> OthersUse:
        """Return it at a sample: the CPU seconds that everything on the host had used, and those of
        its jobs, by run."""
        runs, rest_s = tuple(sorted(attained)), busy_s - math.fsum(attained.values())
        if runs != self.runs:
            return OthersUse(self.share, now, rest_s, runs)
        span_s = (now - self.at) / MICRO
        if span_s < _OTHERS_S:
            return self
        share = max(0.0, (rest_s - self.rest_s) / span_s / cpus)
        if self.share is not None and max(share, self.share) < _LITTLE:
            share = self.share if abs(share - self.share) < _STEADY else share
        return OthersUse(share, now, rest_s, runs)

    def left_of(self, cpus: float) -> float:
        """Return how many CPUs they leave, all where that is unknown, and one at least."""
        return max(1.0, cpus * (1 - (self.share or 0.0)))


@dataclass(slots=True)
class CpuLoad:
    """How busy a host's CPUs are."""

    busy: BusyCpus = field(default_factory=BusyCpus)
    """By everything on it."""

    others: OthersUse = field(default_factory=OthersUse)
    """By what is no job."""

    cores: str = ""
    """The CPUs of each core, joined by +; "" where each has one."""

    def by_core(self, cpuset: str | None) -> list[list[int]]:
        """Return the CPUs of a list by core, those of one core together."""
        cores = [parse_cpus(core) for core in self.cores.split("+")]
        first_of = {cpu: core[0] for core in cores for cpu in core}
        by_core: dict[int, list[int]] = {}
        for cpu in parse_cpus(cpuset or ""):
            by_core.setdefault(first_of.get(cpu, cpu), []).append(cpu)
        return [*by_core.values()]

    def idle_since(self, time: int, cpus: float) -> float | None:
        """Return how many CPU seconds nobody has used since an earlier sample (microseconds), None
        where that is unknown, or where others compete: they take here what jobs leave."""
        samples = self.busy.samples
        begin_s = next((busy_s for at, busy_s in samples if at == time), None)
        if begin_s is None or (self.others.share or 0.0) >= COMPETE:
            return None
        now, busy_s = samples[-1]
        return max(0.0, cpus * (now - time) / MICRO - (busy_s - begin_s))
