"""What a job does once it has started up, in virtual time: it trains, or it serves.

Both work on the portion of the host that the job has, and report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dltools.observations.outcomes import JobResult, satisfies
from dltools.sim.workload import Job, Phase

ROUND_OFF = 1e-9

_REPORT_S = 2.0
"""How often a serving job reports its response time."""


class Report(NamedTuple):
    """A value that a job reported, with its time (s) and epoch."""

    time: float
    value: float
    epoch: int | None


class Readers(NamedTuple):
    """Who reads the reports of a job: whether all are read, or only the first ones; whether those
    that meet its targets start a round."""

    read_all: bool = True
    watch_targets: bool = False


@dataclass(slots=True)
class Portion:
    """What a job has of its host until the next event.

    `wanted` and `cores`: the cores that it could use and that it gets; `rate`: useful CPU seconds
    per second; `awake`: the part of the time in which it wants CPUs; `device_use`: the part of the
    time in which its devices work.
    """

    wanted: float = 0.0
    cores: float = 0.0
    rate: float = 0.0
    awake: float = 1.0
    device_use: float = 0.0


def without(left: float, used: float) -> float:
    """Return the seconds left after `used`, 0 if only a rounding error is left."""
    return left - used if left - used > ROUND_OFF else 0.0


class Interlude(NamedTuple):
    """A part of a phase or of the shutdown of a training: `left` CPU seconds on some threads, or
    seconds of sleep if there are none."""

    threads: int
    left: float


class Training:
    """Epochs of work, which phases interrupt, and a shutdown.

    `done`: useful CPU seconds done of the work. `reported`: how many epochs it has reported.
    `news`: the time of the first report that nobody has seen and that a round is due for.
    """

    def __init__(self, job: Job, result: JobResult, readers: Readers) -> None:
        self.job = job
        self.result = result
        self.readers = readers
        self.metric = job.curve.metric
        self.done = 0.0
        self._interludes: list[Interlude] = []
        self.reported = 0
        self.news = math.inf
        self._targets = job.epoch_that_meets(job.first), job.epoch_that_meets(job.final)
        self._epoch_work = job.work / job.epochs
        self._round_off = ROUND_OFF * max(1.0, job.work)

    def begin(self, now: float) -> None:
        """Begin after the start-up. A training has no time at which it must end."""

    @property
    def busy_threads(self) -> float:
        """The number of threads that want a CPU while it is awake."""
        if self._interludes:
            return float(self._interludes[0].threads)
        return float(self.job.members if self._has_worked else self.job.all_threads)

    @property
    def is_working(self) -> bool:
        """Whether it does its work: not its shutdown or a phase."""
        return not self._interludes and not self._has_worked

    @property
    def _has_worked(self) -> bool:
        return self.job.work - self.done <= self._round_off

    def is_finished(self, _now: float) -> bool:
        """Tell whether it has shut down after its work."""
        return self._has_worked and not self._interludes

    def advance(self, now: float, span: float, portion: Portion) -> Sequence[Report]:
        """Go on for `span` seconds from `now`; return the reports that somebody reads."""
        if self._interludes:
            threads, left = self._interludes.pop(0)
            left = without(left, portion.cores * span if threads else span)
            if left > 0:
                self._interludes.insert(0, Interlude(threads, left))
            return ()
        before, goal = self.done, self._next_phase
        self.done = min(goal, before + portion.rate * span)
        if goal - self.done <= self._round_off:
            self.done = goal
            self._interludes = list(self._interludes_at(goal))
        last = min(self.job.epochs, int(self.done / self._epoch_work + ROUND_OFF))
        made = []
        for epoch in range(self.reported + 1, last + 1):
            is_read = self.readers.read_all or epoch <= 2
            if is_read or epoch in self._targets:
                time = min(now + span, now + (epoch * self._epoch_work - before) / portion.rate)
                self._note(epoch, time)
                if is_read and self.job.reports:
                    made.append(Report(time, self.job.reported(epoch), epoch))
        self.reported = max(self.reported, last)
        return made

    def _note(self, epoch: int, time: float) -> None:
        """Note the targets that an epoch meets, and whether a round is due for its report."""
        first, final = self._targets
        if epoch == first:
            self.result.first = time
        if epoch == final:
            self.result.final = time
        is_news = epoch <= 2 or (self.readers.watch_targets and epoch in self._targets)
        if is_news and self.job.reports:
            self.news = min(self.news, time)

    @property
    def _next_phase(self) -> float:
        """The work (useful CPU seconds) at which its next phase begins; all its work without
        one."""
        job, epoch_work, goal = self.job, self._epoch_work, self.job.epochs
        if job.phases:
            epoch = self.done / epoch_work + ROUND_OFF
            goal = min((math.floor(epoch / phase.every) + 1) * phase.every for phase in job.phases)
        return min(job.work, epoch_work * goal)

    def _interludes_at(self, work: float) -> Iterator[Interlude]:
        """Yield what begins when this much work is done: phases, or the shutdown at its end."""
        if self._has_worked:
            phases = [Phase(cpu=self.job.shutdown, threads=self.job.members)]
        else:
            epoch = round(work / self._epoch_work)
            phases = [phase for phase in self.job.phases if epoch % phase.every == 0]
        for phase in phases:
            parts = Interlude(phase.threads, phase.cpu), Interlude(0, phase.sleep)
            yield from (part for part in parts if part.left > 0)

    def next_change(self, now: float, portion: Portion) -> float:
        """Return when a phase, its work or its shutdown ends, at its present speed; infinity for
        never."""
        if self._interludes:
            threads, left = self._interludes[0]
            speed = portion.cores if threads else 1.0
        else:
            left, speed = self._next_phase - self.done, portion.rate
        return now + left / speed if speed > 0 else math.inf

    def next_news(self, now: float, portion: Portion) -> float:
        """Return when it has made, or will make, a report that a round is due for: one of its first
        two, or one that meets a watched target. Infinity for never."""
        if self.news < math.inf or self._interludes or not self.job.reports:
            return self.news
        epochs = [self.reported + 1] if self.reported < min(2, self.job.epochs) else []
        if self.readers.watch_targets:
            epochs += [
                target for target in self._targets if target is not None and target > self.reported
            ]
        goal = min(epochs, default=math.inf) * self._epoch_work
        if portion.rate <= 0 or goal > self._next_phase + self._round_off:
            return math.inf
        return now + (goal - self.done) / portion.rate


class Serving:
    """Answers to requests, for a time.

    `ends_at`: when that is over (s). `reported`: how many response times it has reported. `news`:
    the time of the first one while nobody has seen it.
    """

    metric: ClassVar[str] = "latency_seconds"
    is_working: ClassVar[bool] = True

    def __init__(self, job: Job, result: JobResult, readers: Readers) -> None:
        self.job = job
        self.result = result
        self.readers = readers
        self.begin(result.start or result.arrival)
        self.reported = 0
        self.news = math.inf

    def begin(self, now: float) -> None:
        """Begin to serve for as long as the job says, or go on with that on another host."""
        self.ends_at = now + self.job.duration - self.result.served

    @property
    def busy_threads(self) -> float:
        """The mean number of threads that want a CPU."""
        job = self.job
        return job.threads * job.request / (job.request + job.think)

    def is_finished(self, now: float) -> bool:
        """Tell whether it has served its time."""
        return now + ROUND_OFF >= self.ends_at

    def advance(self, now: float, span: float, portion: Portion) -> Sequence[Report]:
        """Serve for `span` seconds from `now`; return the reports that somebody reads."""
        if portion.cores <= 0:
            return ()
        job = self.job
        latency = max(job.request, job.request * job.threads / portion.cores - job.think)
        self.result.served += span
        if satisfies(latency, job.qoe):
            self.result.satisfied += span
        if not job.reports:
            return ()
        first, last = _reports_until(now) + 1, _reports_until(now + span)
        times = [number * _REPORT_S for number in range(first, last + 1)]
        count = self.reported
        self.reported += len(times)
        if times and count == 0:
            self.news = min(self.news, times[0])
        elif not self.readers.read_all:
            return ()
        read = times if self.readers.read_all else times[:1]
        return [Report(time, latency, None) for time in read]

    def next_change(self, _now: float, _portion: Portion) -> float:
        """Return when its time is over."""
        return self.ends_at

    def next_news(self, now: float, _portion: Portion) -> float:
        """Return when it has made, or will make, its first report; infinity for never, or once that
        has been seen."""
        if self.news < math.inf or self.reported > 0 or not self.job.reports:
            return self.news
        return (_reports_until(now) + 1) * _REPORT_S


def _reports_until(time: float) -> int:
    """Return how often a serving job would have reported since the run began."""
    return math.floor((time + ROUND_OFF) / _REPORT_S)
