"""How many CPUs a container's threads want, as the kernel's scheduler counted, and how many of them
are busy right now.

A thread that runs, or that waits for a CPU, wants one; a thread that sleeps (a pool without work, a
data loader, a barrier) wants none. `/proc/TID/schedstat` has both times. Threads that are alive say
nothing: PyTorch with two threads has four, two of them asleep (measured).

Threads that wait for each other at barriers spin, and two that spin on one CPU stop each other for
whole time slices: a job with fewer CPUs than busy threads takes ten times as long and more
(measured: over 300 s for 15 s of work).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dltools.engine.cgroup import Cgroup
from dltools.engine.kernel_reading import ROOT, read_text, stat_of

_MOST_THREADS = 512
"""Threads of a container that are looked at (ours): more say no more, and cost time."""

_LEAST_SPAN_S = 0.1
"""Least time between two looks (s): the kernel counts a wait when it ends."""

_MOST_UNSEEN = 0.25
"""Part of a container's CPU time that threads may have used that came and went between two looks
(ours): how long more of them waited is not known, and so neither is the demand."""

_LEAST_UNSEEN = 0.1
"""CPUs' worth of such threads that never count: who wants so little waits for nobody (ours)."""

_TICKS = os.sysconf("SC_CLK_TCK")


class _Times(NamedTuple):
    """For how long a thread has run, and has waited for a CPU (s)."""

    ran: float
    waited: float

    @property
    def wanted(self) -> float:
        """For how long it has wanted a CPU (s)."""
        return self.ran + self.waited


_NONE = _Times(0.0, 0.0)


class _Look(NamedTuple):
    """When it was (s, monotonic), the times of each thread by then, and the CPU seconds."""

    at: float
    threads: dict[int, _Times]
    used: float | None


class DemandWatch:
    """The demand of one run of one container, over the time since the look before.

    Where a container may be frozen for a part of the time (it takes turns), its busiest thread is
    taken to have wanted a CPU for the rest. Where it may starve (threads of this host wait for a
    CPU), a thread that is ready to run and has not run since the last look has wanted one all the
    time: the kernel counts a wait only when it ends. Where threads that are gone by now have used
    much of its CPU time, the demand is unknown: nobody knows how long they waited.
    """

    def __init__(self) -> None:
        self._last: _Look | None = None
        self._cores: float | None = None

    def look(
        self,
        group: Cgroup,
        used: float | None,
        *,
        may_be_frozen: bool = False,
        may_starve: bool = False,
    ) -> float | None:
        """Return the CPUs wanted since the last look, at the first over the threads' lives; None
        where that is unknown. `used`: its CPU seconds; short-lived threads show there alone."""
        now = time.monotonic()
        if self._last is not None and now - self._last.at < _LEAST_SPAN_S:
            return self._cores
        threads = {
            tid: times
            for tid in group.threads[:_MOST_THREADS]
            if (times := _times(tid)) is not None
        }
        look, before = _Look(now, threads, used), self._last
        self._last = look
        if not threads or (used and not any(times.wanted for times in threads.values())):
            self._cores = None
        elif before is None:
            ran = sum(times.ran for times in threads.values())
            self._cores = None if _are_gone(used, ran) else sum(_over_life(threads))
        else:
            starving = _starving(before, look) if may_starve else 0
            self._cores = _between(before, look, starving, may_be_frozen=may_be_frozen)
        return self._cores


def threads_wait(cpus: float) -> bool:
    """Tell whether more threads of this host are ready to run than it has CPUs."""
    running = read_text(f"{ROOT}proc/loadavg").split("/")[0].split()
    return bool(running) and running[-1].isdigit() and int(running[-1]) > cpus


def _starving(before: _Look, now: _Look) -> int:
    """Count the threads that are ready to run and have not run since the look before."""
    unchanged = (tid for tid, times in now.threads.items() if before.threads.get(tid) == times)
    return sum(stat_of(tid)[:1] == ["R"] for tid in unchanged)


def _between(before: _Look, now: _Look, starving: int, *, may_be_frozen: bool) -> float | None:
    span = now.at - before.at
    parts, ran = [], 0.0
    for tid, times in now.threads.items():
        old = before.threads.get(tid, _NONE)
        parts.append(min(1.0, max(0.0, times.wanted - old.wanted) / span))
        ran += max(0.0, times.ran - old.ran)
    parts.sort()
    parts[:starving] = [1.0] * starving
    total = sum(parts)
    if before.used is not None and now.used is not None:
        used = now.used - before.used
        if _are_gone(used, ran, least=_LEAST_UNSEEN * span):
            return None
        total = max(total, used / span)
    busiest = max(parts)
    return total / busiest if may_be_frozen and busiest > 0 else total


def _are_gone(used: float | None, ran: float, *, least: float = 0.0) -> bool:
    """Tell whether threads that are gone have used much of a container's CPU seconds, of which
    those that are there have used `ran`."""
    return used is not None and used - ran > max(_MOST_UNSEEN * used, least)


def _times(tid: int) -> _Times | None:
    """Return a thread's times, None if they are unknown."""
    run, _, rest = read_text(f"{ROOT}proc/{tid}/schedstat").partition(" ")
    waited = rest.partition(" ")[0]
    if run.isdigit() and waited.isdigit():
        return _Times(int(run) / 1e9, int(waited) / 1e9)
    return None


def _over_life(threads: dict[int, _Times]) -> Iterable[float]:
    """Yield for each thread the part of its life for which it wanted a CPU."""
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    for tid, times in threads.items():
        fields = stat_of(tid)
        age = uptime - int(fields[19]) / _TICKS if len(fields) > 19 else 0.0
        yield min(1.0, times.wanted / age) if age > 0 else 0.0


_COUNTS = 5
_BETWEEN_S = 0.02


def count_busy(group: Cgroup, root: Path = ROOT) -> int | None:
    """Return the most threads that want a CPU at once within 0.1 s, None if they are not
    visible."""
    counts = []
    for number in range(_COUNTS):
        if number:
            time.sleep(_BETWEEN_S)
        tids = group.threads
        if not tids:
            return None
        counts.append(sum(stat_of(tid, root)[:1] == ["R"] for tid in tids))
    return max(counts)
