"""What Docker alone would have done by now, and what that promises to each job.

A host of its own is imagined beside the real one. There the same jobs share the CPUs from their
arrival on, equally but for the weights that their owners asked for, and lose nothing by it. It
tells two things:

- by when a job of known length must end here: no later than `LATEST` times its end there, both
  counted from its arrival. The order by ends there keeps a promise of 1 (the Fair Sojourn Protocol:
  Friedman and Henderson, SIGMETRICS 2003), and any order keeps this one if a job that is about to
  miss it goes first. A job of unknown length ends as soon, whenever that is, if what it has had
  there it always has here at `LATEST` times that age. The one that has the longest way to go, with
  all the CPUs that it can use, is taken for the last, which ends no later than `LAST` times its end
  there;
- whether the order pays: by the job seconds that it has saved, the number of jobs that run there
  less those that run here, over the time (Little: that is the sum of completion times), and by
  those that it will have saved if jobs share equally from now on. A job that has waited for others
  costs that much although nobody has ended later yet.

All of it is ours.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dltools.notation.times import MICRO
from dltools.plan.forecast.completion import Prospect, equal_parts, sharing_equally
from dltools.plan.signals.busy_threads import needed_cpus
from dltools.plan.signals.job import Job
from dltools.plan.signals.remaining_effort import length_left

LATEST = 1.2
"""How many times later than under Docker alone a job may end."""

LAST = 1.02
"""How many times later the last of all jobs may end (ours)."""

_SMALL_CPUS, _EPSILON = 1.0, 1e-9
"""A job that can use fewer CPUs than the first ends no later at all, nor does one that has all that
it can use under Docker alone: they cost others little (ours)."""

_SEEN_S = 30.0
"""Job seconds that count at least (ours): a job that is killed in its first second loses all that
others waited."""

_NEW_CPU_S = 1.0
"""CPU seconds up to which a job has had about as much as it has had there (ours)."""

_GRACE_S = 5.0
"""For how long a job of unknown length may wait although it has had too little, as it has at first
(s): a turn (ours)."""

_IN_HAND, _MOST_IN_HAND_S = 0.5, 5.0
"""Part of the time by which a job may end later that is kept in hand, and the most (s; ours)."""


class Imagined(NamedTuple):
    """A job on the imagined host.

    `arrived`: microseconds. `cpus`: how many it can use. `had`: the CPU seconds that it has had
    there, `attained`: here. `total`: how many it needs in all, None while that is unknown.
    `is_here`: whether it runs on the real host. It has ended there at `ended` (microseconds), None
    if not yet. Each of its `containers` shares the CPUs as a job of its own, by the `weight` that
    its owner asked for, as a multiple of the default.
    """

    arrived: int
    cpus: float
    had: float
    attained: float
    total: float | None = None
    is_here: bool = True
    ended: int | None = None
    containers: int = 1
    weight: float = 1.0

    @property
    def each(self) -> float:
        """How many CPUs each of its containers can use, by its weight."""
        return self.cpus / self.containers / self.weight

    def container(self, left: float) -> Prospect:
        """Return one of its containers, if all need so many CPU seconds."""
        return Prospect(left / self.containers, self.cpus / self.containers, weight=self.weight)

    @property
    def left_on_docker(self) -> float:
        """The CPU seconds that it still needs there; as many as it has had here, if unknown."""
        return self.attained if self.total is None else self.total - self.had

    @property
    def left_here(self) -> float:
        """The CPU seconds that it still needs here; as many as it has had, if unknown."""
        return max(_EPSILON, self.attained if self.total is None else self.total - self.attained)

    def ended_by(self, now: int, rate: float) -> tuple[Imagined, float]:
        """Return it as one that has ended there, if it has had all that it needs and more, with so
        many CPUs at last; and how long ago that was (s)."""
        if self.ended is not None or self.total is None or self.had < self.total:
            return self, 0.0
        over_s = min((self.had - self.total) / max(rate, _EPSILON), (now - self.arrived) / MICRO)
        return self._replace(had=self.total, ended=now - round(over_s * MICRO)), over_s

    def rate(self, parts: Mapping[float, float]) -> float:
        """Return how many CPUs it has, where each container that can use so many by its weight has
        these for a weight of 1."""
        return self.containers * self.weight * parts.get(self.each, 0.0)

    def left_s(self, cpus: float) -> float:
        """Return how long it runs from now on, alone on a host of so many CPUs (s); one of unknown
        length is taken to need as much as it has had."""
        return self.left_here / max(_EPSILON, min(self.cpus, cpus))


class Due(NamedTuple):
    """Until when a job can wait."""

    wait_s: float
    """In how many seconds it must run at the latest, below 0 where it is late."""

    had: float
    """The CPU time that it has had, as a part of what it has had under Docker alone, about; or the
    time that it takes there, as a part of what it takes here at least, where that is less."""


@dataclass(frozen=True, slots=True)
class DockerAlone:
    """The imagined host at a time."""

    at: int = 0
    """That time (microseconds)."""

    since: int = 0
    """When the first of its jobs arrived (microseconds)."""

    jobs: Mapping[str, Imagined] = field(default_factory=dict)
    """Its jobs, by run."""

    saved_s: float = 0.0
    """The job seconds that the real host has saved since, below 0 where it has lost some."""

    there_s: float = 0.0
    """The job seconds that have gone by since on the imagined host."""

    def after(
        self, now: int, jobs: Sequence[Job], cpus: float, idle_s: float | None = None
    ) -> DockerAlone:
        """Return it at a later time, with the jobs that run on the real host then. It begins anew
        when these have all ended. `idle_s`: the CPU seconds that nobody has used there since."""
        if not jobs:
            return DockerAlone()
        before = self if self.jobs else DockerAlone(now, min(job.arrived for job in jobs))
        span = max(0, now - before.at) / MICRO
        if idle_s is not None and span > 0:
            had_here = {key: old.attained for key, old in before.jobs.items()}
            used = (job.use.attained - had_here.get(job.run_id, 0.0) for job in jobs)
            cpus = min(cpus, max(_SMALL_CPUS, (math.fsum(used) + idle_s) / span))
        seen = {job.run_id: job for job in jobs}
        by_run, late_s = {}, 0.0
        for key, (had, rate) in before._later(span, cpus).items():
            twin, over_s = _seen(before.jobs[key], seen.get(key), had, span).ended_by(now, rate)
            late_s += over_s
            if twin.is_here or twin.ended is None:
                by_run[key] = twin
        jobs_on_docker = sum(old.ended is None for old in before.jobs.values())
        jobs_here = sum(old.is_here for old in before.jobs.values())
        for key, job in seen.items():
            if key not in by_run:
                new = Imagined(job.arrived, 0.0, job.use.attained, job.use.attained)
                by_run[key] = _seen(new, job, job.use.attained, 0.0)
        saved_s = before.saved_s + (jobs_on_docker - jobs_here) * span - late_s
        there_s = before.there_s + jobs_on_docker * span - late_s
        return DockerAlone(now, before.since, by_run, saved_s, there_s)

    def _later(self, span: float, cpus: float) -> dict[str, tuple[float, float]]:
        """Return by run what each job has had there after so many seconds, and how many CPUs it had
        at last. One that ends before is counted as if it went on; the others share its CPUs."""
        had = {key: job.had for key, job in self.jobs.items()}
        rates = dict.fromkeys(had, 0.0)
        running = [key for key, job in self.jobs.items() if job.ended is None]
        while running and span > 0:
            parts = self._parts(running, cpus)
            rates |= {key: max(_EPSILON, self.jobs[key].rate(parts)) for key in running}
            left = {key: (self.jobs[key].total or math.inf) - had[key] for key in running}
            left_s = {key: max(0.0, left[key]) / rates[key] for key in running}
            step = min(span, *left_s.values())
            had = {key: cpu_s + rates[key] * step for key, cpu_s in had.items()}
            running = [key for key in running if left_s[key] > step]
            span -= step
        return {key: (cpu_s, rates[key]) for key, cpu_s in had.items()}

    def _parts(self, running: Iterable[str], cpus: float) -> dict[float, float]:
        counts = defaultdict[float, float](float)
        for key in running:
            counts[self.jobs[key].each] += self.jobs[key].containers * self.jobs[key].weight
        needs = sorted(counts.items())
        return {need: part for (need, _), part in zip(needs, equal_parts(needs, cpus), strict=True)}

    def ends(self, cpus: float) -> dict[str, int]:
        """Return when each job ends there (microseconds), by run: those of known length, and those
        that are taken to need as much as they have had."""
        left = {key: job.left_on_docker for key, job in self.jobs.items() if job.ended is None}
        ends = self._ends_s(left, cpus).items()
        ends_at = {key: self.at + round(end * MICRO) for key, end in ends if math.isfinite(end)}
        return ends_at | {key: job.ended for key, job in self.jobs.items() if job.ended is not None}

    def _ends_s(self, left: Mapping[str, float], cpus: float) -> dict[str, float]:
        """Return in how many seconds jobs end that need so many CPU seconds and share the CPUs
        equally, by run."""
        containers = [key for key in left for _ in range(self.jobs[key].containers)]
        each = [self.jobs[key].container(left[key]) for key in containers]
        return dict(zip(containers, sharing_equally(each, cpus), strict=True))

    def lost(self, ends: Mapping[str, int], cpus: float, competing: float = 0.0) -> float:
        """Return the part of all job seconds that the real host has lost, below 0 where it has
        saved some: those that have gone by, and those that are to come if from now on jobs share
        the CPUs equally there and here. `ends`: when jobs end there. All takes longer there by the
        part `competing`, for this host loses nothing by it."""
        left = {key: job.left_here for key, job in self.jobs.items() if job.is_here}
        here_s = math.fsum(self._ends_s(left, cpus).values())
        docker_s = math.fsum(max(0, end - self.at) for end in ends.values()) / MICRO
        lost_s = here_s - docker_s - self.saved_s - competing * (self.there_s + docker_s)
        return lost_s / max(_SEEN_S, self.there_s + docker_s)

    def dues(
        self, now: int, cpus: float, latest: float = LATEST, *, is_order: bool = True
    ) -> dict[str, Due]:
        """Return until when each job can wait here from a time on, by run, so that it ends in time.
        Where jobs run in order (`is_order`), the last ends sooner, and who would wait for nobody
        there waits for nobody here."""
        here = {key: job for key, job in self.jobs.items() if job.is_here}
        is_known = any(job.total is not None for job in here.values())
        running = [key for key, job in self.jobs.items() if job.ended is None]
        ends, parts, dues = self.ends(cpus) if is_known else {}, self._parts(running, cpus), {}
        last = max(here, key=lambda key: (here[key].left_s(cpus), key), default=None)
        passed_s = (now - self.at) / MICRO
        for key, job in here.items():
            had = (job.attained + _NEW_CPU_S) / (job.had + _NEW_CPU_S)
            age_s = (now - job.arrived) / MICRO
            rate = job.rate(parts)
            waits_on_docker = job.cpus > rate + _EPSILON
            is_free = job.cpus < _SMALL_CPUS or (is_order and not waits_on_docker)
            is_last = is_order and key == last
            times = 1.0 if is_free else min(latest, LAST) if is_last else latest
            if job.total is None:
                ahead_s = (job.attained - job.had) / max(rate, _EPSILON) - passed_s
                wait_s = (times - 1) * age_s + times * ahead_s + (0.0 if is_free else _GRACE_S)
                dues[key] = Due(wait_s, had)
                continue
            end_s = (ends[key] - job.arrived) / MICRO
            in_hand_s = min(_MOST_IN_HAND_S, _IN_HAND * (times - 1) * end_s)
            wait_s = times * end_s - age_s - job.left_s(cpus) - in_hand_s
            dues[key] = Due(wait_s, min(had, end_s / (age_s + job.left_s(cpus))))
        return dues


def _seen(twin: Imagined, job: Job | None, had: float, span_s: float) -> Imagined:
    """Return what is known of a job that has had so much there, after a look at the real host: one
    that has ended there needed what it had had, and what it may have had since the look before."""
    if job is None:
        total = min(max(twin.attained, had), twin.attained + twin.cpus * span_s)
        return twin._replace(had=had, total=total if twin.is_here else twin.total, is_here=False)
    left, attained = length_left(job, at_least=True), job.use.attained
    return Imagined(
        twin.arrived,
        needed_cpus(job),
        had,
        attained,
        None if left is None else attained + left,
        twin.is_here,
        twin.ended,
        max(1, len(job.membership.members)),
        job.owner.ratio,
    )
