"""A job's pace on its GPUs: how much it progresses each second, alone there and beside others.

Progress counts in the job's steps, or in its reports where its first one names no step. A window
runs from a report to the first one `WINDOW_S` later, in one company. A validation or a checkpoint
makes one window slow, or a few: so only medians count, of `LEAST` windows or more. All of it ours.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dltools.notation.times import MICRO

WINDOW_S = 10.0
"""Least length of a window."""

LEAST, MOST = 3, 5
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
        if span_s < WINDOW_S or progress == 0:
            return replace(self, newest=time, reports=self.reports + 1)
        rates = (*self.rates, progress / span_s)[-MOST:]
        median = None if self.company else _median(rates)
        return replace(anew, rates=rates, alone=max(self.alone, median or 0.0))


def _median(rates: Sequence[float]) -> float | None:
    return statistics.median(rates) if len(rates) >= LEAST else None
