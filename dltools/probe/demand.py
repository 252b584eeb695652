"""How many CPUs a container's threads want, as the kernel's scheduler counted.

A thread that runs, or that waits for a CPU, wants one; a thread that sleeps (a pool without work, a
data loader, a barrier) wants none. `/proc/TID/schedstat` has both times. Threads that are alive say
nothing: PyTorch with two threads has four, two of them asleep (measured).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import NamedTuple

from dltools.engine.cgroup import Cgroup
from dltools.engine.kernel_files import ROOT, read_text

_MOST_THREADS = 512
"""Threads of a container that are looked at (ours): more say no more, and cost time."""

_LEAST_SPAN_S = 0.1
"""Least time between two looks (s): the kernel counts a wait when it ends."""

_TICKS = os.sysconf("SC_CLK_TCK")


class _Look(NamedTuple):
    """When it was (s, monotonic), what each thread had wanted by then (s), and the CPU seconds."""

    at: float
    wanted: dict[int, float]
    used: float | None


class DemandWatch:
    """The demand of one run of one container, over the time since the look before."""

    def __init__(self) -> None:
        """Nothing is looked at yet."""
        self._last: _Look | None = None
        self._cores: float | None = None

    def look(
        self, group: Cgroup, used: float | None, *, may_be_frozen: bool = False
    ) -> float | None:
        """Return the CPUs wanted since the last look, at the first over the threads' lives.

        `used`: the container's CPU seconds now; short-lived threads show there alone. Where it
        `may_be_frozen` for a part of the time (it takes turns), its busiest thread is taken to have
        wanted a CPU for the rest. None where the kernel does not tell.
        """
        now = time.monotonic()
        if self._last is not None and now - self._last.at < _LEAST_SPAN_S:
            return self._cores
        threads = group.threads[:_MOST_THREADS]
        wanted = {tid: seconds for tid in threads if (seconds := _wanted(tid)) is not None}
        look, before = _Look(now, wanted, used), self._last
        self._last = look
        if not wanted or (used and not any(wanted.values())):
            self._cores = None
        elif before is None:
            self._cores = sum(_over_life(wanted))
        else:
            self._cores = _between(before, look, may_be_frozen=may_be_frozen)
        return self._cores


def _between(before: _Look, now: _Look, *, may_be_frozen: bool) -> float:
    span = now.at - before.at
    parts = [min(1.0, max(0.0, seconds - before.wanted.get(tid, 0.0)) / span)
             for tid, seconds in now.wanted.items()]  # fmt: skip
    total = sum(parts)
    if before.used is not None and now.used is not None:
        total = max(total, (now.used - before.used) / span)
    busiest = max(parts)
    return total / busiest if may_be_frozen and busiest > 0 else total


def _wanted(tid: int) -> float | None:
    """Return for how long a thread has run or waited for a CPU (s), None if that is unknown."""
    run, _, rest = read_text(f"{ROOT}proc/{tid}/schedstat").partition(" ")
    waited = rest.partition(" ")[0]
    return (int(run) + int(waited)) / 1e9 if run.isdigit() and waited.isdigit() else None


def _over_life(wanted: dict[int, float]) -> Iterable[float]:
    """Yield for each thread the part of its life for which it wanted a CPU."""
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    for tid, seconds in wanted.items():
        fields = read_text(f"{ROOT}proc/{tid}/stat").rpartition(")")[2].split()
        age = uptime - int(fields[19]) / _TICKS if len(fields) > 19 else 0.0
        yield min(1.0, seconds / age) if age > 0 else 0.0
