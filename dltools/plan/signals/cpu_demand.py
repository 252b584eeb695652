"""How many CPUs a container wants, and how many it gets, by its newest samples.

`ContainerHistory` keeps the result. It shows what a job needs, whether it sleeps, and whether it is
held back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dltools.notation.times import MICRO
from dltools.observations.idleness import LEAST_LOOK_S, QUIET_CORES, QUIET_S

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
        self,
        looks: Iterable[tuple[int, float, float, str | None]],
        last: tuple[int, float] | None,
        before: str | None,
        *,
        takes_turns: bool,
    ) -> CpuDemand:
        """Return the demand after new samples: their times, the CPU seconds used, the CPUs wanted,
        and the states. `last`: time and CPU seconds of the sample before; `before`: its state.

        A NaN (unknown) drops what was known, except during a pause. The demand of a container that
        takes turns does not show sleep; it sleeps if it was not paused and used no CPU.
        """
        cores, demands, uses, quiet_since = self.cores, self.demands, self.uses, self.quiet_since
        for time, used, wanted, state in looks:
            known = last is not None and time > last[0] and used >= last[1]
            got = (used - last[1]) * MICRO / (time - last[0]) if last and known else math.nan
            if known:
                cores = (*cores, got)[-_LOOKS:]
            if not math.isnan(wanted):
                demands, uses = _last_looks((*demands, wanted), (*uses, got))
            elif "paused" not in (before, state):
                demands = uses = ()
            if last is not None and 0 < time - last[0] < round(LEAST_LOOK_S * MICRO):
                before = state
                continue
            is_quiet = None if math.isnan(wanted) or takes_turns else wanted < QUIET_CORES
            if known and got >= QUIET_CORES:
                is_quiet = False
            elif known and takes_turns and "paused" not in (before, state):
                is_quiet = True
            if is_quiet and quiet_since is None:
                quiet_since = time
            elif not is_quiet:
                quiet_since = None
            if not math.isnan(used):
                last = time, used
            before = state
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
        pairs = [(got, wanted) for got, wanted in both if not math.isnan(got)]
        if not pairs:
            return None
        return sum(got for got, _ in pairs) < _GETS_ALL * sum(wanted for _, wanted in pairs)

    def is_quiet_at(self, time: int) -> bool:
        """Tell whether, at a time (microseconds), it has wanted almost no CPU for a while."""
        return self.quiet_since is not None and time - self.quiet_since >= round(QUIET_S * MICRO)


class Throttled(NamedTuple):
    """For how much of the time a container's quota stopped it. `at` is the time of the newest
    sample (microseconds), `seconds` the counter there; `part` of the time since the sample before,
    0 to 1, None while unknown."""

    at: int | None = None
    seconds: float = 0.0
    part: float | None = None

    def after(self, times: Sequence[int], seconds: Sequence[float]) -> Throttled:
        """Return it after new samples, with NaN for a counter that is unknown."""
        known = [(time, value) for time, value in zip(times, seconds, strict=True)
                 if not math.isnan(value)][-2:]  # fmt: skip
        if self.at is not None:
            known = [(self.at, self.seconds), *known][-2:]
        if not known or known[-1][0] == self.at:
            return self
        (at, total), part = known[-1], None
        if len(known) > 1 and known[0][0] < at and known[0][1] <= total:
            part = min(1.0, (total - known[0][1]) * MICRO / (at - known[0][0]))
        return Throttled(at, total, part)


NOT_THROTTLED = Throttled()


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
