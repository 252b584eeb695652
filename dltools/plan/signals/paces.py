"""A job's pace: how fast it progresses on the CPUs that it gets.

`pace_tracking` updates the paces of a host's jobs at each round. Progress is counted in steps, or
in reports if the job names no steps.

A pace is progress per CPU second, or, where a device does the work, per second, compared with the
job's own best. It is measured over windows: from one report to a later one, while the job's place
among the others stays the same. If a report is overdue, the time since the last report gives an
upper bound of the rate.

All rules are ours.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from dltools.notation.times import MICRO

_LEAST_CPU_S = 4.0
"""Least CPU time of a window (s). CPU time is interpolated between samples, which is wrong for the
third of a second in which a setting changes."""

_OVERDUE = 1.5
"""A report is overdue after this many times the least CPU time between two reports."""

_HELD_BACK = 0.75
"""A job that gets less than this part of the most CPUs that it has ever had is held back."""

_ONE_CPU = 1.1
"""A job that never used more CPUs than this, although more were free, keeps one thread busy."""

_FREE_CPU_S = 1.5
"""Least CPU time (s), with a report in it, that shows how many threads a job keeps busy."""

_DOUBT = 0.5
"""If a job that nobody goes before falls under this part of its best rate, the number of its busy
threads is measured again: beside others, two spinning threads look like one that works."""

_FREE_SPAN_S = 1.0
"""Least time (s) between two samples that show how many CPUs a job uses."""


class Place(StrEnum):
    """How a job competes with the others of its host."""

    SHARES = "shares"  # it shares the CPUs with all others
    FIRST = "first"  # the others wait at lower weights
    WAITS = "waits"  # it waits at a lower weight
    TURN = "turn"  # it has its turn, and the others are paused


class Mark(NamedTuple):
    """A job's position at a time."""

    time: int
    """That time (microseconds)."""

    work: float
    """The CPU seconds that it had had."""

    reports: int = 0
    """How many reports it had made."""

    step: int | None = None
    """Its step, None where it tells none."""

    is_report: bool = False
    """Whether it had just reported."""


class Pace(NamedTuple):
    """The pace of one run of a job."""

    metric: str
    """The metric whose points are its reports."""

    newest: Mark
    """Its newest report."""

    begin: Mark
    """The begin of the window."""

    place: Place | None = None
    """How it competes with the others of its host, None where nothing competes with it."""

    best: float = 0.0
    """Its best rate (progress per CPU second), 0 if unknown."""

    stride: float = 1.0
    """The progress from report to report."""

    peak: float = 0.0
    """The most CPUs that it has used."""

    used: Mark | None = None
    """The sample from which its CPU use is measured, None before one."""

    free_cpu_s: float = 0.0
    """Its CPU seconds since its first report, while it could have used more CPUs."""

    free_reports: int = 0
    """Its reports since its first one, while it could have used more CPUs."""

    shared: float | None = None
    """Its rate while others held it back, None if unknown."""

    ahead: float | None = None
    """Its rate while it went first, None if unknown."""

    def reported(
        self, times: Sequence[int], steps: Sequence[int | None], work_at: Callable[[int], float]
    ) -> Pace:
        """Return the pace after new points of its metric, in order of time. `work_at` gives the CPU
        seconds at a time."""
        first = bisect.bisect_right(times, self.newest.time)
        if first == len(times):
            return self
        before = self.newest.reports - first

        def mark(at: int) -> Mark:
            return Mark(times[at], work_at(times[at]), before + at + 1, steps[at], is_report=True)

        begin = self.begin
        if not begin.is_report and self.newest.reports == begin.reports:
            at = bisect.bisect_right(times, begin.time, lo=first)
            begin = mark(at) if at < len(times) else begin
        return self._replace(begin=begin, newest=mark(len(times) - 1))

    def measured(self, now: int, work: float) -> Pace:
        """Return the pace at a time (microseconds) at which the job has had `work` CPU seconds."""
        return self._with_use(now, work)._with_rate(now, work)

    def _with_use(self, now: int, work: float) -> Pace:
        """Update `peak` and the free times by the CPU use since the sample before."""
        mark = Mark(now, work, self.newest.reports)
        if self.used is None:
            return self._replace(used=mark)
        span_s, cpu_s = (now - self.used.time) / MICRO, work - self.used.work
        if span_s < _FREE_SPAN_S:
            return self
        is_free = self.place in (None, Place.FIRST)
        return self._replace(
            used=mark,
            peak=max(self.peak, cpu_s / span_s),
            free_cpu_s=self.free_cpu_s + is_free * cpu_s,
            free_reports=self.free_reports + is_free * (mark.reports - self.used.reports),
        )

    def _with_rate(self, now: int, work: float) -> Pace:
        """Update the rates by a window that has ended, or by a report that is overdue."""
        begin, newest = self.begin, self.newest
        if newest.reports == begin.reports:
            return self._overdue(now, work)
        progress = _progress(begin, newest)
        if progress <= 0:
            return self._replace(begin=newest)
        cpu_s, span_s = newest.work - begin.work, (newest.time - begin.time) / MICRO
        if cpu_s < _LEAST_CPU_S or span_s <= 0:
            return self
        pace = self._replace(
            begin=newest,
            best=max(self.best, progress / cpu_s),
            peak=max(self.peak, cpu_s / span_s),
            stride=progress / (newest.reports - begin.reports),
        )
        return pace._with_seen_rate(progress / cpu_s, cpu_s / span_s)

    def in_place(self, place: Place | None, now: int, work: float) -> Pace:
        """Return the pace with a place from now on (None: nothing competes with it). A new place
        begins a new window."""
        if place == self.place:
            return self
        begin = self.newest._replace(time=now, work=work, is_report=False)
        return self._replace(place=place, begin=begin, used=begin)

    def part_of_best(self, rate: float | None) -> float | None:
        """Return a rate as a part of its best one, None if either is unknown."""
        return None if rate is None or self.best <= 0 else min(1.0, rate / self.best)

    @property
    def has_one_busy_thread(self) -> bool:
        """Whether it has shown that it keeps only one thread busy, however many it has."""
        return self.has_been_free and self.peak <= _ONE_CPU

    @property
    def has_been_free(self) -> bool:
        """Whether it has used free CPUs for long enough to show how many threads it keeps busy."""
        return self.free_reports > 0 and self.free_cpu_s >= _FREE_CPU_S

    def _overdue(self, now: int, work: float) -> Pace:
        cpu_s, span_s = work - self.begin.work, (now - self.begin.time) / MICRO
        due_s = self.stride / self.best if self.best > 0 else math.inf
        if cpu_s < _OVERDUE * due_s or span_s <= 0:
            return self
        return self._with_seen_rate(self.stride / cpu_s, cpu_s / span_s)

    def _with_seen_rate(self, rate: float, cores: float) -> Pace:
        """Blend a rate into that of the present place; the newest counts for half."""
        if self.place in (Place.SHARES, Place.WAITS) and cores < _HELD_BACK * self.peak:
            return self._replace(shared=_blend(self.shared, rate))
        if self.place is Place.FIRST:
            return self._replace(ahead=_blend(self.ahead, rate))
        if self.place is None and rate < _DOUBT * self.best:
            return self._replace(free_cpu_s=0.0, free_reports=0)
        return self


def _progress(begin: Mark, end: Mark) -> float:
    if begin.step is not None and end.step is not None:
        return float(end.step - begin.step)
    return float(end.reports - begin.reports)


def _blend(old: float | None, new: float) -> float:
    return new if old is None else (old + new) / 2
