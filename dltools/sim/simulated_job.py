"""A job on a host in virtual time: it works, reports and ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from dltools.notation.limits import CPU_LIMITS, Limits, only
from dltools.notation.times import MICRO
from dltools.observations.host_samples import GpuUse
from dltools.observations.outcomes import JobResult, satisfies
from dltools.plan.policy.interface import Requirements
from dltools.plan.realisation.settings import Settings
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import InForce
from dltools.sim.sharing import PAUSED
from dltools.sim.workload import Job, Phase

LATENCY = "latency_seconds"
REPORT_S = 2.0
"""How often a serving job reports its response time."""

GPU_MEMORY, GPU_MEMORY_LIMIT = 2**30, 2**36
"""Bytes of GPU memory that a job holds, and that each GPU has: whoever shares one fits there."""

ROUND_OFF = 1e-9

_TURN = ("group", "turn_s", "queue")


class Report(NamedTuple):
    """A value that a job reported, with its time (s) and epoch."""

    job: SimulatedJob
    time: float
    value: float
    epoch: int | None


@dataclass(slots=True)
class SimulatedJob:
    """A job on a host.

    `startup_left` and `shutdown_left`: CPU seconds left of start-up and shutdown. `done`: useful
    CPU seconds done of its work. `phases`: the phases that interrupt its work now; of the first one
    `phase_cpu` (CPU seconds) and `phase_sleep` (s) are left. `reported`: how many epochs, or
    response times, it has reported. `cpu`: CPU seconds used on this host.

    These hold until the next event: `wanted` and `cores`, the cores that it could use and that it
    gets; `rate`, useful CPU seconds per second; `awake`, the part of the time in which it wants
    CPUs; `gpu_use`, the part of the time in which its GPUs work.

    `limits`: those of all its containers together, with its turn.

    `gpus`: the numbers of the GPUs that it holds. `ends_at`: when a serving job ends. `first_epoch`
    and `final_epoch`: the epochs that meet its targets; `watches_targets`: whether these start a
    round. `unread`: reports that are not yet in the policy's history; `news`: the time of the first
    of them that a round is due for. `observed`: the reports for an observer, None without one.
    """

    job: Job
    history: ContainerHistory
    result: JobResult
    startup_left: float = 0.0
    shutdown_left: float = 0.0
    done: float = 0.0
    phases: list[Phase] = field(default_factory=list)
    phase_cpu: float = 0.0
    phase_sleep: float = 0.0
    reported: int = 0
    limits: Settings = field(init=False)
    wanted: float = 0.0
    cores: float = 0.0
    rate: float = 0.0
    awake: float = 1.0
    gpu_use: float = 0.0
    gpus: tuple[int, ...] = ()
    cpu: float = 0.0
    ends_at: float = math.inf
    first_epoch: int | None = None
    final_epoch: int | None = None
    watches_targets: bool = False
    unread: list[Report] = field(default_factory=list)
    news: float = math.inf
    observed: list[Report] | None = None

    def __post_init__(self) -> None:
        """Begin with the limits that its owner asked for."""
        self.begin_limits()

    @property
    def epoch_work(self) -> float:
        """Useful CPU seconds of an epoch."""
        return self.job.work / self.job.epochs

    @property
    def metric(self) -> str:
        """The name of the metric that it reports."""
        return LATENCY if self.job.serves else self.job.curve.metric

    @property
    def latency(self) -> float | None:
        """The response time of a serving job, None while it cannot answer."""
        if self.cores <= 0:
            return None
        request = self.job.request
        return max(request, request * self.job.threads / self.cores - self.job.think)

    @property
    def busy_threads(self) -> float:
        """The number of its threads that want a CPU while it is awake."""
        job = self.job
        if self.startup_left > 0 or self._has_worked:
            return float(job.members)
        if job.serves:
            return job.threads * job.request / (job.request + job.think)
        if self.phases:
            return float(self.phases[0].threads) if self.phase_cpu > 0 else 0.0
        return float(job.all_threads)

    @property
    def demand(self) -> float:
        """The mean number of CPUs that its threads want."""
        return self.busy_threads * (self.awake if self.is_working else 1.0)

    def wanted_cores(self, host_cpus: float) -> float:
        """Return the cores that it could use if it were alone."""
        return min(self.busy_threads, host_cpus)

    @property
    def is_working(self) -> bool:
        """Whether it does its work: not its start-up, its shutdown or a phase."""
        return self.startup_left == 0 and not self.phases and not self._has_worked

    @property
    def _has_worked(self) -> bool:
        has_done = self.job.work - self.done <= _round_off(self.job.work)
        return has_done and not self.job.serves and not self.phases

    # Limits

    def begin_limits(self) -> None:
        """Set the limits that its owner asked for."""
        job = self.job
        quota = job.cpus * job.members if job.cpus else None
        self.limits = {"cpus": quota, "weight": job.cpu_weight * job.members}

    def set_limits(self, setting: Settings, *, takes_turns: bool) -> None:
        """Set limits, with a weight for each container, and a turn; without one it takes none."""
        new = only(setting, CPU_LIMITS)
        if "weight" in new:
            new["weight"] *= self.job.members
        turn = only(setting, _TURN) if takes_turns and "turn_s" in setting else {}
        self.limits = {**only(self.limits, CPU_LIMITS), **new, **turn}

    @property
    def weight(self) -> float:
        """The weight of each of its containers."""
        return self.limits["weight"] / self.job.members

    # Working

    def advance(self, now: float, span: float, *, reports_all: bool) -> float:
        """Work for `span` seconds from `now`; return the CPU seconds used.

        Without `reports_all` it reports only its first value and those that meet its targets.
        """
        used = self.cores * span
        self.cpu += used
        self.result.cpu += used
        if self.gpu_use > 0:
            self.result.gpu += self.gpu_use * span * max(1, len(self.gpus))
        if self.startup_left > 0:
            self._start_up(now + span, used)
        elif self.job.serves:
            self._serve(now, span, reports_all)
        elif self.phases:
            self._pass_phase(span, used)
        elif self._has_worked:
            self.shutdown_left = _without(self.shutdown_left, used)
        else:
            self._train(now, span, reports_all)
        return used

    def _start_up(self, now: float, used: float) -> None:
        self.startup_left = _without(self.startup_left, used)
        if self.startup_left == 0:
            self.ends_at = now + self.job.duration

    def _pass_phase(self, span: float, used: float) -> None:
        if self.phase_cpu > 0:
            self.phase_cpu = _without(self.phase_cpu, used)
        else:
            self.phase_sleep = _without(self.phase_sleep, span)
        if self.phase_cpu == 0 and self.phase_sleep == 0:
            self._begin_phases(self.phases[1:])

    def _begin_phases(self, phases: list[Phase]) -> None:
        self.phases = phases
        if phases:
            self.phase_cpu, self.phase_sleep = phases[0].cpu, phases[0].sleep

    def _serve(self, now: float, span: float, reports_all: bool) -> None:
        latency = self.latency
        if latency is None:
            return
        self.result.served += span
        if satisfies(latency, self.job.qoe):
            self.result.satisfied += span
        first = math.floor((now + ROUND_OFF) / REPORT_S) + 1
        last = math.floor((now + span + ROUND_OFF) / REPORT_S)
        for number in range(first, last + 1) if self.job.reports else ():
            if self.reported == 0:
                self.news = min(self.news, number * REPORT_S)
            if reports_all or self.reported == 0:
                self._report(number * REPORT_S, latency, None)
            self.reported += 1

    def _train(self, now: float, span: float, reports_all: bool) -> None:
        job, before, epoch_work = self.job, self.done, self.epoch_work
        goal = self._next_phase
        self.done = min(goal, before + self.rate * span)
        if goal - self.done <= _round_off(job.work):
            self.done = goal
            self._begin_phases(self._phases_at(goal))
        last = min(job.epochs, int(self.done / epoch_work + ROUND_OFF))
        for epoch in range(self.reported + 1, last + 1):
            is_read = reports_all or epoch <= 2
            meets_target = epoch in (self.first_epoch, self.final_epoch)
            if is_read or meets_target:
                time = min(now + span, now + (epoch * epoch_work - before) / self.rate)
                if epoch == self.first_epoch:
                    self.result.first = time
                if epoch == self.final_epoch:
                    self.result.final = time
                if job.reports and (epoch <= 2 or (meets_target and self.watches_targets)):
                    self.news = min(self.news, time)
                if is_read and job.reports:
                    self._report(time, job.reported(epoch), epoch)
        self.reported = max(self.reported, last)

    @property
    def _next_phase(self) -> float:
        """The work (useful CPU seconds) at which its next phase begins; all its work without
        one."""
        job, epoch_work = self.job, self.epoch_work
        epoch = self.done / epoch_work + ROUND_OFF
        goals = [(math.floor(epoch / phase.every) + 1) * phase.every for phase in job.phases]
        return min(job.work, epoch_work * min(goals, default=job.epochs))

    def _phases_at(self, work: float) -> list[Phase]:
        """Return the phases that begin when this much work is done; none at the end of the work."""
        if self.job.work - work <= _round_off(self.job.work):
            return []
        epoch = round(work / self.epoch_work)
        return [
            phase
            for phase in self.job.phases
            if epoch % phase.every == 0 and phase.cpu + phase.sleep > 0
        ]

    def _report(self, time: float, value: float, epoch: int | None) -> None:
        report = Report(self, time, value, epoch)
        self.unread.append(report)
        if self.observed is not None:
            self.observed.append(report)

    # Being observed

    def sample(self, micros: int, requirements: Requirements, *, sees_threads: bool = True) -> bool:
        """Bring the policy's history up to date; tell whether a target was met. `sees_threads`:
        whether the demand of its threads is observed."""
        history, use, limits = self.history, self.history.use, self.limits
        self.news = math.inf
        if not use.samples or use.samples[-1][0] < micros:
            takes_turns = "group" in limits
            demand = self.demand
            # At most samples a job that takes turns is paused, although it has work.
            state = PAUSED if takes_turns and demand > 0 else "running"
            new = [micros], [self.cpu], [demand if sees_threads else math.nan]
            use.note_demand(new, [state], history.in_force)
            now: Limits = {"cpus": limits["cpus"], "weight": self.weight}
            history.in_force = InForce(now, limits.get("turn_s"))
            if self.holds_gpus:
                ratio = self.gpu_use if self.job.device > 0 else math.nan
                gpu = GpuUse(ratio, GPU_MEMORY, GPU_MEMORY_LIMIT)
                history.note_gpus([micros], [{gpu_name(number): gpu for number in self.gpus}])
            if not history.progress.metrics:
                use.note_busy(new, [self.weight], history.waits_up_to)
            use.add_samples([micros], [self.cpu])
        if not self.unread:
            return False
        progress = history.progress
        before = (progress.met_first, progress.met_final)
        _, seconds, values, epochs = zip(*self.unread, strict=True)
        times = [round(time * MICRO) for time in seconds]
        history.add_points(self.metric, (times, values, epochs), curves=requirements.curves)
        progress.step, progress.epoch = epochs[-1], float(self.reported)
        if self.job.length and not self.job.serves:
            progress.note_counts(self.job.epochs, None)
        positions = (None if epoch is None else float(epoch) for epoch in epochs)
        progress.note_positions(zip(times, epochs, positions, strict=True), use)
        self.unread.clear()
        return (progress.met_first, progress.met_final) != before

    @property
    def holds_gpus(self) -> bool:
        """Whether dl-probe would see it on GPUs. GPUs that only a trace names stand for CPUs."""
        return bool(self.gpus) and (self.job.device > 0 or bool(self.job.gpu_list))

    # What comes next

    def is_finished(self, now: float) -> bool:
        """Tell whether it has ended: it has shut down after its work, or served its time."""
        if self.job.serves:
            return self.startup_left == 0 and now + ROUND_OFF >= self.ends_at
        return self._has_worked and self.shutdown_left == 0

    def next_change(self, now: float) -> float:
        """Return when its start-up, its work or its life ends, at its present speed; infinity for
        never."""
        left = self.startup_left or (self.shutdown_left if self._has_worked else 0.0)
        if left > 0:
            return now + left / self.cores if self.cores > 0 else math.inf
        if self.job.serves:
            return self.ends_at
        if self.phases:
            if self.phase_cpu > 0:
                return now + self.phase_cpu / self.cores if self.cores > 0 else math.inf
            return now + self.phase_sleep
        return now + (self._next_phase - self.done) / self.rate if self.rate > 0 else math.inf

    def next_news(self, now: float) -> float:
        """Return when it has made, or will make, a report that a round is due for: one of its first
        two, or one that meets a watched target. Infinity for never."""
        if self.news < math.inf or self.startup_left > 0 or self.phases or not self.job.reports:
            return self.news
        if self.job.serves:
            first = math.floor((now + ROUND_OFF) / REPORT_S) + 1
            return first * REPORT_S if self.reported == 0 else math.inf
        goal = self._next_goal()
        if goal is None or self.rate <= 0 or goal > self._next_phase + _round_off(self.job.work):
            return math.inf
        return now + (goal - self.done) / self.rate

    def _next_goal(self) -> float | None:
        """Return the work (useful CPU seconds) at which it makes the next such report."""
        epochs = [self.reported + 1] if self.reported < min(2, self.job.epochs) else []
        if self.watches_targets:
            epochs += [
                epoch
                for epoch in (self.first_epoch, self.final_epoch)
                if epoch is not None and epoch > self.reported
            ]
        return min(epochs) * self.epoch_work if epochs else None


def gpu_name(number: int) -> str:
    """Return the name of the GPU of this number."""
    return f"GPU-{number}"


def _round_off(seconds: float) -> float:
    return ROUND_OFF * max(1.0, seconds)


def _without(left: float, used: float) -> float:
    """Return the seconds left after `used`, 0 if only a rounding error is left."""
    return left - used if left - used > ROUND_OFF else 0.0
