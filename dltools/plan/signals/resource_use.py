"""What a container uses: CPU seconds, GPU seconds, and how many CPUs it wants.

Its effort is counted in seconds of its resource: of GPUs if it uses one, else of CPUs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import eq, le
from typing import NamedTuple

from dltools.notation.resources import Resource
from dltools.notation.times import MICRO
from dltools.observations import idleness
from dltools.plan.signals.effort import value_at
from dltools.plan.signals.gpu_use import GpuUse
from dltools.plan.signals.in_force import InForce

_GETS_ALL = 0.95
"""A job that gets this part of the CPUs that it wants, or more, is not held back (ours). If one of
two threads that wait for each other is held back, the other spins: only half of the loss shows."""

_STARVES = 0.5
"""Part of the CPUs wanted below which a job starves (ours)."""

_A_THREAD = 0.75
"""If a job wants this many CPUs or more, at least one of its threads always wants one (ours)."""

_LOOKS = 3
"""Number of newest samples whose largest demand counts (ours): the kernel counts a wait when it
ends, so that a single sample of a job that is held back may miss it."""

LOOKS = _LOOKS + 1
"""Number of newest samples from which all follows while no demand is known."""


Samples = tuple[Sequence[int], Sequence[float], Sequence[float]]
"""New samples: their times (microseconds), the CPU seconds so far, and the CPUs wanted; NaN for
what is unknown."""

_Sample = tuple[int, float]
_Look = tuple[int, float, float, str | None]


class CpuDemand(NamedTuple):
    """A container's demand and use at its newest samples.

    `cores`: the CPUs that it used. `demands`: the CPUs that its threads wanted at the newest
    samples with a known demand, `uses`: the CPUs that it got there (NaN: unknown). `quiet_since`:
    the time since which it has wanted almost no CPU (microseconds), None while it wants some.
    """

    cores: tuple[float, ...] = ()
    demands: tuple[float, ...] = ()
    uses: tuple[float, ...] = ()
    quiet_since: int | None = None

    def after(
        self, looks: Iterable[_Look], last: _Sample | None, before: str | None, *, takes_turns: bool
    ) -> CpuDemand:
        """Return the demand after new samples: their times, the CPU seconds used, the CPUs wanted,
        and the states. `last`: time and CPU seconds of the sample before; `before`: its state.

        A NaN (unknown) drops what was known, except during a pause. The demand of a container that
        takes turns does not show sleep; it sleeps if it was not paused and used no CPU.
        """
        cores, demands, uses, quiet_since = self.cores, self.demands, self.uses, self.quiet_since
        for time, used, demand, state in looks:
            is_known = last is not None and time > last[0] and used >= last[1]
            got = (used - last[1]) * MICRO / (time - last[0]) if last and is_known else math.nan
            if is_known:
                cores = (*cores, got)[-_LOOKS:]
            is_awake, before = "paused" not in (before, state), state
            if not math.isnan(demand):
                demands, uses = _last_looks((*demands, demand), (*uses, got))
            elif is_awake:
                demands = uses = ()
            if last is not None and 0 < time - last[0] < round(idleness.LEAST_LOOK_S * MICRO):
                continue
            is_quiet = is_known and is_awake if takes_turns else demand < idleness.QUIET_CORES
            if not is_quiet or got >= idleness.QUIET_CORES:
                quiet_since = None
            elif quiet_since is None:
                quiet_since = time
            if not math.isnan(used):
                last = time, used
        return CpuDemand(cores, demands, uses, quiet_since)

    @property
    def newest(self) -> CpuDemand:
        """What the newest sample alone shows."""
        return self._replace(demands=self.demands[-1:], uses=self.uses[-1:])

    @property
    def demand(self) -> float | None:
        """The largest demand (CPUs) at the newest samples, None if unknown."""
        return max(self.demands) if self.demands else None

    @property
    def is_held_back(self) -> bool | None:
        """Whether it got clearly fewer CPUs than its threads wanted at the newest samples, None if
        unknown."""
        both = zip(self.uses, self.demands, strict=True)
        pairs = [(got, demand) for got, demand in both if not math.isnan(got)]
        if not pairs:
            return None
        return sum(got for got, _ in pairs) < _GETS_ALL * sum(demand for _, demand in pairs)

    def is_quiet_at(self, time: int) -> bool:
        """Tell whether, at a time (microseconds), it has wanted almost no CPU for a while."""
        least = round(idleness.QUIET_S * MICRO)
        return self.quiet_since is not None and time - self.quiet_since >= least


class Throttled(NamedTuple):
    """For how much of the time a container's quota stopped it. `at` is the time of the newest
    sample (microseconds), `seconds` the counter there; `part` of the time since the sample before,
    0 to 1, None while unknown."""

    at: int | None = None
    seconds: float = 0.0
    part: float | None = None

    def after(self, times: Sequence[int], seconds: Sequence[float]) -> Throttled:
        """Return it after new samples, with NaN for a counter that is unknown."""
        pairs = [(time, value) for time, value in zip(times, seconds, strict=True)
                 if not math.isnan(value)][-2:]  # fmt: skip
        if self.at is not None:
            pairs = [(self.at, self.seconds), *pairs][-2:]
        if not pairs or pairs[-1][0] == self.at:
            return self
        (at, total), part = pairs[-1], None
        if len(pairs) > 1 and pairs[0][0] < at and pairs[0][1] <= total:
            part = min(1.0, (total - pairs[0][1]) * MICRO / (at - pairs[0][0]))
        return Throttled(at, total, part)


def _last_looks(
    demands: tuple[float, ...], uses: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the demands and uses that count. A starving job seems to want less than it does: its
    threads sleep while they wait for the one that has no CPU. So while at least one thread wants a
    CPU, the largest demand is kept until the job gets half of what it wants."""
    if len(demands) <= _LOOKS:
        return demands, uses
    starves = uses[-1] < _STARVES * demands[-1] and demands[-1] >= _A_THREAD
    drop = 1 if starves and demands[0] == max(demands) else 0
    return demands[:drop] + demands[drop + 1 :], uses[:drop] + uses[drop + 1 :]


_BEFORE = (-math.inf, -math.inf)
_EVER = -(2**63)

_NEW_S = 5.0
"""A silent container counts as busy from its start, if it is seen this early (s)."""

_FEEDS_S = 300.0
"""For how long (s) after its last use of a GPU a container counts as using it (ours)."""


@dataclass(slots=True)
class Use:
    """The use of one run of a container."""

    started: int | None = None
    """When it started (microseconds), None if unknown."""

    threads: int | None = None
    """How many it has, None if unknown."""

    samples: list[tuple[int, float]] = field(default_factory=list)
    """The time (microseconds) and the CPU seconds so far, in order of time."""

    cpu: CpuDemand = field(default_factory=CpuDemand)
    """How many CPUs it wanted and got at the newest samples."""

    throttled: Throttled = field(default_factory=Throttled)
    """For how much of the time its quota stopped it."""

    is_busy: bool = False
    """Whether it uses CPU, updated until it reports."""

    gpu_use: GpuUse = field(default_factory=GpuUse)
    """How it uses the GPUs that it holds."""

    def add_samples(self, times: Sequence[int], seconds: Sequence[float]) -> None:
        """Add counter samples, at least one, with rising times. NaN means no sample; one that goes
        back in time or count starts a new record."""
        # Never true with a NaN among them: those after a NaN are not greater, nor is it.
        last = self.samples[-1] if self.samples else _BEFORE
        if last[0] < times[0] and last[1] <= seconds[0] and _are_rising(seconds):
            self.samples += zip(times, seconds)  # noqa: B905 (of one length, and often)
            return
        for time, used in zip(times, seconds, strict=True):
            if math.isnan(used):
                continue
            if self.samples and (time <= self.samples[-1][0] or used < self.samples[-1][1]):
                self.samples.clear()
            self.samples.append((time, used))

    def note_demand(self, new: Samples, states: Sequence[str | None], before: InForce) -> None:
        """Update `cpu` from new samples, before their counters are added. `before`: the limits in
        force at the sample before them."""
        times, seconds, demands = new
        last, takes_turns = self.samples[-1] if self.samples else None, before.turn_s is not None
        is_known = any(map(eq, demands, demands))  # NaN equals nothing
        if not (is_known or takes_turns or "paused" in states) and _are_rising(seconds[-LOOKS:]):
            times, seconds = times[-LOOKS:], seconds[-LOOKS:]
            demands, states = demands[-LOOKS:], states[-LOOKS:]
        looks = zip(times, seconds, demands, states, strict=True)
        self.cpu = self.cpu.after(looks, last, before.state, takes_turns=takes_turns)

    def note_busy(self, new: Samples, weights: Sequence[float | None], waits_up_to: float) -> None:
        """Update `is_busy` from new samples, before their counters are added.

        `weights`: the weight in force at each sample. A container that others keep from the CPUs is
        busy, too. One that may wait in the queue, as it has a weight of `waits_up_to` or less, or
        an unknown one, never becomes idle.
        """
        last = self.samples[-1] if self.samples else None
        if last is None and self.started is not None:
            self.is_busy = new[0][0] - self.started <= _NEW_S * MICRO
            last = (self.started, 0.0)
        for time, used, demand, weight in zip(*new, weights, strict=True):
            if math.isnan(used):
                continue
            is_known = last is not None and time > last[0] and used >= last[1]
            cores = (used - last[1]) * MICRO / (time - last[0]) if last and is_known else math.nan
            is_short = last is not None and time - last[0] < round(idleness.LOOK_S * MICRO)
            is_silent = cores < idleness.SILENT_CORES and not is_short
            if demand >= idleness.BUSY_CORES or cores >= idleness.BUSY_CORES:
                self.is_busy = True
            elif is_silent and weight is not None and weight > waits_up_to:
                self.is_busy = False
            last = (time, used)

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs that it holds: all the devices that there are so far."""
        return tuple(self.gpu_use.gpus)

    def is_feeder(self, now: int) -> bool:
        """Tell whether it trains or serves on a GPU: it has used one within the last minutes, so
        that a validation or a checkpoint does not count as the end."""
        used_at = self.gpu_use.used_at
        return used_at is not None and now - used_at <= round(_FEEDS_S * MICRO)

    @property
    def is_slowed(self) -> bool:
        """Whether it is held back on the devices that it shares."""
        lever = self.gpu_use.lever
        return lever is not None and (lever.part < 1 or lever.cpus is not None)

    @property
    def is_idle(self) -> bool:
        """Whether it has wanted almost no CPU for a while: it sleeps, and waits for no CPU."""
        return bool(self.samples) and self.cpu.is_quiet_at(self.samples[-1][0])

    @property
    def resource(self) -> Resource:
        """What its effort counts in seconds of: GPUs once it has been known to use one, else
        CPUs."""
        return Resource.CPU if self.gpu_use.since is None else Resource.GPU

    @property
    def uses_gpu(self) -> bool:
        """Whether its effort counts in GPU seconds."""
        return self.gpu_use.since is not None

    @property
    def effort_unit(self) -> str:
        """The unit of its effort, abbreviated."""
        return f"{self.resource} s"

    @property
    def effort_samples(self) -> Sequence[tuple[int, float]]:
        """The samples of its effort: (time, seconds so far)."""
        return self.gpu_use.samples if self.uses_gpu else self.samples

    @property
    def effort_since(self) -> int:
        """The time after which its effort counts in this unit (microseconds)."""
        since = self.gpu_use.since
        return _EVER if since is None else since

    @property
    def effort(self) -> float:
        """The seconds of its resource that it has had, since it began to use that."""
        return self.gpu_use.samples[-1][1] if self.uses_gpu else self.attained

    def effort_at(self, time: int) -> float:
        """Return its effort up to a time, interpolated between samples (ours)."""
        return value_at(self.effort_samples, time) if self.uses_gpu else self.work_at(time)

    def work_at(self, time: int) -> float:
        """Return the CPU seconds used up to a time, interpolated between samples (ours)."""
        if not self.samples or time > self.samples[0][0]:
            return value_at(self.samples, time)
        end, used = self.samples[0]
        start = self.started
        if start is None or not start < end:
            return used
        return used * max(0.0, (time - start) / (end - start))

    def paced_at(self, time: int) -> float:
        """Return the seconds up to a time by which its pace is counted: of CPUs, or, where a GPU
        does its work, of the clock."""
        return time / MICRO if self.uses_gpu else self.work_at(time)

    @property
    def attained(self) -> float:
        """The CPU seconds that it has had."""
        return self.samples[-1][1] if self.samples else 0.0

    def forget(self, until: int) -> None:
        """Drop the samples that no window from `until` on needs."""
        for samples in (self.samples, self.gpu_use.samples):
            at = bisect.bisect_right(samples, (until, math.inf))
            if at > 1:
                del samples[: at - 1]


def _are_rising(seconds: Sequence[float]) -> bool:
    """Tell whether none is less than the one before; NaN among others never is not."""
    return all(map(le, seconds, islice(seconds, 1, None)))
