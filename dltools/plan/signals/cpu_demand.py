"""How many CPUs a container wants, and how many it gets: what its newest samples say.

`ContainerHistory` keeps it. What a job needs, whether it sleeps, and whether it is held back
follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dltools.notation.times import MICRO

_QUIET, _QUIET_S = 0.25, 4.0
"""A container that wants fewer CPUs than this for so many seconds is idle (ours): a notebook that
computes for 50 ms each second costs others little, and cannot wake while it is paused."""

_LEAST_LOOK_S = 0.75
"""Least time between two samples that tell of sleep (s, ours): one burst fills a shorter one."""

_GETS_ALL = 0.95
"""Part of the CPUs wanted from which on a job got all (ours). Of two threads that wait for each
other, one spins while the other is held back: so half of what they lose shows."""

_STARVES = 0.5
"""Part of the CPUs wanted below which a job starves (ours)."""

_A_THREAD = 0.75
"""CPUs wanted from which on one thread always wants one (ours)."""

_LOOKS = 3
"""Samples whose largest demand counts (ours): the kernel counts a wait when it ends, so that one
sample of a job that is held back may miss it."""


@dataclass(frozen=True, slots=True)
class CpuDemand:
    """What the last samples say.

    `cores`: the CPUs that the container used. `demands`: the CPUs that its threads wanted at the
    last samples that tell it, `uses`: those that it got there (NaN: unknown). `quiet_since`: since
    when it has wanted next to none (microseconds), None while it wants some.
    """

    cores: tuple[float, ...] = ()
    demands: tuple[float, ...] = ()
    uses: tuple[float, ...] = ()
    quiet_since: int | None = None

    def after(
        self,
        times: Sequence[int],
        wanted_cpus: Sequence[float],
        seconds: Sequence[float],
        states: Sequence[str | None],
        last: tuple[int, float] | None,
        before: str | None,
        *,
        takes_turns: bool,
    ) -> CpuDemand:
        """Return the demand after new samples: their times, the CPUs wanted, the CPU seconds used,
        and the states. `last`: time and CPU seconds of the sample before, `before`: the state
        there.

        NaN is unknown, and what was known is forgotten then, but for a pause. Where it takes turns
        its demand says nothing of sleep, but one that was not paused and has used no CPU sleeps.
        """
        cores, demands, uses, quiet_since = self.cores, self.demands, self.uses, self.quiet_since
        for time, wanted, used, state in zip(times, wanted_cpus, seconds, states, strict=True):
            known = last is not None and time > last[0] and used >= last[1]
            got = (used - last[1]) * MICRO / (time - last[0]) if last and known else math.nan
            if known:
                cores = (*cores, got)[-_LOOKS:]
            if not math.isnan(wanted):
                demands, uses = _last_looks((*demands, wanted), (*uses, got))
            elif "paused" not in (before, state):
                demands = uses = ()
            if last is not None and 0 < time - last[0] < round(_LEAST_LOOK_S * MICRO):
                before = state
                continue
            is_quiet = None if math.isnan(wanted) or takes_turns else wanted < _QUIET
            if known and got >= _QUIET:
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
    def demand(self) -> float | None:
        """The most CPUs that its threads wanted at the last samples, None where that is unknown."""
        return max(self.demands, default=None)

    @property
    def is_held_back(self) -> bool | None:
        """Whether it got clearly fewer CPUs than its threads wanted at the last samples, None where
        that is unknown."""
        both = zip(self.uses, self.demands, strict=True)
        pairs = [(got, wanted) for got, wanted in both if not math.isnan(got)]
        if not pairs:
            return None
        return sum(got for got, _ in pairs) < _GETS_ALL * sum(wanted for _, wanted in pairs)

    def is_quiet_at(self, time: int) -> bool:
        """Tell whether it has wanted next to no CPU for a while by a time (microseconds)."""
        return self.quiet_since is not None and time - self.quiet_since >= round(_QUIET_S * MICRO)


def _last_looks(
    demands: tuple[float, ...], uses: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the last looks. A job that starves seems to want less than it does: threads sleep
    while they wait for the one that has no CPU. So while one thread always wants a CPU, the largest
    demand stays until the job gets half of what it wants."""
    if len(demands) <= _LOOKS:
        return demands, uses
    starves = uses[-1] < _STARVES * demands[-1] and demands[-1] >= _A_THREAD
    drop = 1 if starves and demands[0] == max(demands) else 0
    return demands[:drop] + demands[drop + 1 :], uses[:drop] + uses[drop + 1 :]
