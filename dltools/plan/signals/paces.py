"""A job's pace: how fast it progresses on the CPUs and on the GPUs that it gets.

`pace_tracking` follows the paces of a host's jobs from round to round. `Pace` and `GpuPace` count
progress in the job's steps, or in its reports where it names no steps (on GPUs: where the first
report names none).

On CPUs a pace is progress for each CPU second, against the job's own best so far. A window runs
from one report to a later one, in one place. Where a report is overdue, the CPU time without one
bounds the rate.

On GPUs it is progress each second, alone there and beside others. A window runs from a report to
the first one `GPU_WINDOW_S` later, in one company. A validation or a checkpoint makes one window
slow, or a few: so only medians count, of `_FEWEST_WINDOWS` or more. All of it ours.
"""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dltools.notation.times import MICRO

_LEAST_CPU_S = 4.0
"""Least CPU time of a window (s). It is taken to be even between two samples; for the third of a
second in which a setting changes it is not."""

_OVERDUE = 1.5
"""A report is overdue after so many times the CPU time that it takes at best."""

_HELD_BACK = 0.75
"""A job that gets less than this part of the most CPUs that it has had is held back."""

_ONE_CPU = 1.1
"""A job that never had more CPUs than this, though it could, keeps one thread busy."""

_FREE_CPU_S = 1.5
"""Least CPU time (s), with a report in it, over which a job must show that: one look is enough."""

_DOUBT = 0.5
"""A job that falls under this part of its best rate, though nobody is before it, must show again
how many threads it keeps busy: beside others, two threads that spin look like one that works."""

_FREE_SPAN_S = 1.0
"""Least time (s) between two samples that tell how many CPUs a job has."""


class Place(StrEnum):
    """What a job competes as."""

    SHARES = "shares"  # with all others
    FIRST = "first"  # others wait at lower weights
    WAITS = "waits"  # at a lower weight
    TURN = "turn"  # the others are paused


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a job was at a time (microseconds): reports so far, step, CPU seconds; `is_report`
    tells that it had just reported."""

    time: int
    work: float
    reports: int = 0
    step: int | None = None
    is_report: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of one run of a job.

    `metric`: whose points are its reports. `newest`: its newest report. `begin`: of the window.
    `best`: its best rate (progress per CPU second), 0 where unknown; `stride`: progress in a
    report; `peak`: the most CPUs that it has had. `used`: the sample from which on its CPU time is
    to be taken; `free_cpu_s` and `free_reports`: its CPU time, and its reports, since its first
    report, while it could have had more CPUs. `shared` and `ahead`: its rate while others held it
    back, and while it was first; None where unknown.
    """

    metric: str
    newest: Mark
    begin: Mark
    place: Place | None = None
    best: float = 0.0
    stride: float = 1.0
    peak: float = 0.0
    used: Mark | None = None
    free_cpu_s: float = 0.0
    free_reports: int = 0
    shared: float | None = None
    ahead: float | None = None

    def reported(
        self, times: Sequence[int], steps: Sequence[int | None], work_at: Callable[[int], float]
    ) -> Pace:
        """Return the pace after points of its metric, in order of time."""
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
        return replace(self, begin=begin, newest=mark(len(times) - 1))

    def measured(self, now: int, work: float) -> Pace:
        """Return the pace at a time (microseconds), at which a job has had `work` CPU seconds."""
        return self._with_use(now, work)._with_rate(now, work)

    def _with_use(self, now: int, work: float) -> Pace:
        """Note how many CPUs the job has had since the sample before."""
        mark = Mark(now, work, self.newest.reports)
        if self.used is None:
            return replace(self, used=mark)
        span_s, cpu_s = (now - self.used.time) / MICRO, work - self.used.work
        if span_s < _FREE_SPAN_S:
            return self
        found = replace(self, used=mark, peak=max(self.peak, cpu_s / span_s))
        if self.place not in (None, Place.FIRST):
            return found
        reports = self.free_reports + mark.reports - self.used.reports
        return replace(found, free_cpu_s=self.free_cpu_s + cpu_s, free_reports=reports)

    def _with_rate(self, now: int, work: float) -> Pace:
        """Note the rate of a window that has ended, or that a report is overdue."""
        begin, newest = self.begin, self.newest
        if newest.reports == begin.reports:
            return self._overdue(now, work)
        progress = _progress(begin, newest)
        if progress <= 0:
            return replace(self, begin=newest)
        cpu_s, span_s = newest.work - begin.work, (newest.time - begin.time) / MICRO
        if cpu_s < _LEAST_CPU_S or span_s <= 0:
            return self
        found = replace(
            self,
            begin=newest,
            best=max(self.best, progress / cpu_s),
            peak=max(self.peak, cpu_s / span_s),
            stride=progress / (newest.reports - begin.reports),
        )
        return found._with_seen_rate(progress / cpu_s, cpu_s / span_s)

    def in_place(self, place: Place | None, now: int, work: float) -> Pace:
        """Return the pace in a place from now on (None: it need not compete).

        A window does not reach across two roles.
        """
        if place == self.place:
            return self
        begin = replace(self.newest, time=now, work=work, is_report=False)
        return replace(self, place=place, begin=begin, used=begin)

    @property
    def report_cpu_s(self) -> float | None:
        """CPU seconds from report to report at best, None where unknown."""
        return self.stride / self.best if self.best > 0 else None

    @property
    def has_one_busy_thread(self) -> bool:
        """Whether it has shown that it keeps one thread busy, however many it has."""
        return self.has_been_free and self.peak <= _ONE_CPU

    @property
    def has_been_free(self) -> bool:
        """Whether it has had time to show how many threads it keeps busy."""
        return self.free_reports > 0 and self.free_cpu_s >= _FREE_CPU_S

    def _overdue(self, now: int, work: float) -> Pace:
        cpu_s, span_s = work - self.begin.work, (now - self.begin.time) / MICRO
        due_s = self.report_cpu_s
        if due_s is None or cpu_s < _OVERDUE * due_s or span_s <= 0:
            return self
        return self._with_seen_rate(self.stride / cpu_s, cpu_s / span_s)

    def _with_seen_rate(self, rate: float, cores: float) -> Pace:
        """Note a rate in the present place; the newest counts for half."""
        if self.place in (Place.SHARES, Place.WAITS) and cores < _HELD_BACK * self.peak:
            return replace(self, shared=_blend(self.shared, rate))
        if self.place is Place.FIRST:
            return replace(self, ahead=_blend(self.ahead, rate))
        if self.place is None and rate < _DOUBT * self.best:
            return replace(self, free_cpu_s=0.0, free_reports=0)
        return self


def _progress(begin: Mark, end: Mark) -> float:
    if begin.step is not None and end.step is not None:
        return float(end.step - begin.step)
    return float(end.reports - begin.reports)


def _blend(old: float | None, new: float) -> float:
    return new if old is None else (old + new) / 2


GPU_WINDOW_S = 10.0
"""Least length of a window."""

_FEWEST_WINDOWS, _MOST_WINDOWS = 3, 5
"""So many windows, the newest, make a median."""


@dataclass(frozen=True, slots=True)
class GpuPace:
    """The pace of one run of a job.

    `metric`: whose points are its reports. `company`: the runs that use a GPU of its, () while it
    is alone there, None while it is not followed. `newest`: time of its newest report, `begin`:
    that of the one that began the window (microseconds, None: none yet), `step`: the step there;
    `reports`: how many came since. `in_steps`: whether progress is steps, None before the first
    report. `rates`: progress per second of the newest windows in this company. `alone`: the best
    median so far of windows alone, 0 where unknown.
    """

    metric: str
    company: tuple[str, ...] | None = None
    newest: int = -1
    begin: int | None = None
    step: int | None = None
    reports: int = 0
    in_steps: bool | None = None
    rates: tuple[float, ...] = ()
    alone: float = 0.0

    @property
    def kept(self) -> float | None:
        """The part of its best rate alone that it keeps beside others, at most 1; None where that
        is unknown."""
        rate = _median(self.rates) if self.company else None
        return None if rate is None or self.alone <= 0 else min(1.0, rate / self.alone)

    def beside(self, company: tuple[str, ...] | None, now: int) -> GpuPace:
        """Return the pace in a company from now on (microseconds): no window reaches across two."""
        if company == self.company:
            return self
        newest = max(self.newest, now)
        return replace(
            self, company=company, newest=newest, begin=None, step=None, reports=0, rates=()
        )

    def reported(self, times: Sequence[int], steps: Sequence[int | None]) -> GpuPace:
        """Return the pace after points of its metric, in order of time; late ones are left out."""
        if self.company is None:
            return self
        found = self
        for time, step in zip(times, steps, strict=True):
            if time > found.newest:
                found = found._after(time, step)
        return found

    def _after(self, time: int, step: int | None) -> GpuPace:
        in_steps = step is not None if self.in_steps is None else self.in_steps
        if in_steps and step is None:
            return self
        anew = replace(self, newest=time, begin=time, step=step, reports=0, in_steps=in_steps)
        if self.begin is None:
            return anew
        progress = float(self.reports + 1)
        if in_steps and step is not None and self.step is not None:
            progress = float(step - self.step)
        if progress < 0:  # an epoch, or all of it, begins anew
            return anew
        span_s = (time - self.begin) / MICRO
        if span_s < GPU_WINDOW_S or progress == 0:
            return replace(self, newest=time, reports=self.reports + 1)
        rates = (*self.rates, progress / span_s)[-_MOST_WINDOWS:]
        median = None if self.company else _median(rates)
        return replace(anew, rates=rates, alone=max(self.alone, median or 0.0))


def _median(rates: Sequence[float]) -> float | None:
    return statistics.median(rates) if len(rates) >= _FEWEST_WINDOWS else None
