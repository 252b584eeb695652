"""What Docker alone would have done by now, and what that promises to each job.

A host of its own is imagined beside the real one. There the same jobs share the CPUs equally from
their arrival on, and lose nothing by it. It tells two things:

- by when a job of known length must end here: no later than `LATEST` times its end there, both
  counted from its arrival. The order by ends there keeps a promise of 1 (the Fair Sojourn Protocol:
  Friedman and Henderson, SIGMETRICS 2003), and any order keeps this one if a job that is about to
  miss it goes first. The wait of a job of unknown length is bounded by `queue`;
- whether the order has paid so far: by the job seconds that it has saved, the number of jobs that
  run there less those that run here, over the time (Little: that is the sum of completion times).

All of it is ours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dltools.notation.times import MICRO
from dltools.plan.forecast.completion import Prospect, equal_parts, side_by_side
from dltools.plan.signals.busy_threads import needed_cpus
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.prediction import length_left

LATEST = 1.2
"""How many times later than under Docker alone a job may end."""

MAX_SLOWDOWN = 2.0
"""In any ten minutes a job gets at least 1/MAX_SLOWDOWN of what exclusive turns in order would give
it."""


@dataclass(frozen=True, slots=True)
class Imagined:
    """A job on the imagined host.

    `arrived`: microseconds. `cpus`: how many it can use. `had`: the CPU seconds that it has had
    there, `attained`: here. `total`: how many it needs in all, None while that is unknown.
    `is_here`: whether it runs on the real host. It has ended there at `ended` (microseconds), None
    if not yet.
    """

    arrived: int
    cpus: float
    had: float
    attained: float
    total: float | None = None
    is_here: bool = True
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class DockerAlone:
    """The imagined host at a time (microseconds); its jobs by run. `since`: when the first of them
    arrived. `saved_s`: job seconds that the real host has saved since, of `there_s` there."""

    at: int = 0
    since: int = 0
    jobs: Mapping[str, Imagined] = field(default_factory=dict)
    saved_s: float = 0.0
    there_s: float = 0.0

    def after(self, now: int, jobs: Sequence[ContainerHistory], cpus: float) -> DockerAlone:
        """Return it at a later time, with the jobs that run on the real host then. It begins anew
        when these have all ended."""
        if not jobs:
            return DockerAlone()
        before = self if self.jobs else DockerAlone(now, min(job.arrived for job in jobs))
        span = max(0, now - before.at) / MICRO
        parts = before._parts(cpus)
        seen = {job.run_id: job for job in jobs}
        found, late_s = {}, 0.0
        for key, one in before.jobs.items():
            rate = parts.get(one.cpus, 0.0) if one.ended is None else 0.0
            known = _seen(one, seen.get(key), one.had + rate * span)
            if one.ended is None and known.total is not None and known.had >= known.total:
                over_s = (known.had - known.total) / max(rate, 1e-9)
                over_s = min(over_s, (now - one.arrived) / MICRO)
                late_s += over_s
                ended = now - round(over_s * MICRO)
                known = replace(known, had=known.total, ended=ended)
            if known.is_here or known.ended is None:
                found[key] = known
        there = sum(one.ended is None for one in before.jobs.values())
        here = sum(one.is_here for one in before.jobs.values())
        for key, job in seen.items():
            if key not in found:
                new = Imagined(job.arrived, 0.0, job.attained, job.attained)
                found[key] = _seen(new, job, job.attained)
        return DockerAlone(
            now,
            before.since,
            found,
            before.saved_s + (there - here) * span - late_s,
            before.there_s + there * span - late_s,
        )

    def _parts(self, cpus: float) -> dict[float, float]:
        running = Counter(one.cpus for one in self.jobs.values() if one.ended is None)
        return equal_parts(running.items(), cpus)

    def ends(self, cpus: float) -> dict[str, int]:
        """Return when each job ends there (microseconds), by run: those of known length, and those
        that are taken to need as much as they have had."""
        running = {key: one for key, one in self.jobs.items() if one.ended is None}
        left = [
            Prospect(
                (one.had + one.attained if one.total is None else one.total) - one.had, one.cpus
            )
            for one in running.values()
        ]
        ends = zip(running, side_by_side(left, cpus), strict=True)
        found = {key: self.at + round(end * MICRO) for key, end in ends if math.isfinite(end)}
        return found | {key: one.ended for key, one in self.jobs.items() if one.ended is not None}

    def latest(self, cpus: float) -> dict[str, int]:
        """Return by when each job of known length must end here (microseconds), by run."""
        known = {
            key: one for key, one in self.jobs.items() if one.is_here and one.total is not None
        }
        ends = self.ends(cpus) if known else {}
        return {
            key: known[key].arrived + round(LATEST * (end - known[key].arrived))
            for key, end in ends.items()
            if key in known
        }


def _seen(one: Imagined, job: ContainerHistory | None, had: float) -> Imagined:
    """Return what is known of a job that has had so much there, after a look at the real host: one
    that has ended there needed what it had had."""
    if job is None:
        total = one.attained if one.is_here else one.total
        return Imagined(one.arrived, one.cpus, had, one.attained, total, False, one.ended)
    left, attained = length_left(job), job.attained
    total = None if left is None else attained + left
    return Imagined(one.arrived, needed_cpus(job), had, attained, total, one.is_here, one.ended)
