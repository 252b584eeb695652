"""A machine in virtual time: its jobs work, report and end; what a policy is told of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dltools.labels import EPOCHS, FINAL, METRIC, OBJECTIVE, QOE, TARGET
from dltools.notation.cpu_lists import format_cpus, parse_cpus
from dltools.observations.outcomes import JobResult, satisfies
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.base import Requirements
from dltools.plan.policy.container_history import MICRO, ContainerHistory
from dltools.plan.realisation.base import Realisation
from dltools.sim.contention import Limits, allocate, beside, turns, useful
from dltools.sim.workload import HostSpec, Job

LATENCY = "latency_seconds"
REPORT_S = 2.0
"""How often a serving job says its response time."""

_ROUND_OFF = 1e-9
_STEP = 1e-6  # seconds; what comes sooner than the clock can tell would never come


@dataclass(slots=True)
class Run:
    """A job on a machine. `done` is its useful work, `cpu` what it has used, `epoch` how many it
    has reported; `starting` the CPU seconds of its start-up that are left; `cores` and `rate` hold
    until the next event."""

    job: Job
    track: ContainerHistory
    result: JobResult
    starting: float = 0.0
    done: float = 0.0
    epoch: int = 0
    limits: Limits = field(default_factory=Limits)
    want: float = 0.0
    cores: float = 0.0
    rate: float = 0.0
    cpu: float = 0.0
    until: float = math.inf  # when a serving job ends
    first_epoch: int | None = None  # those that meet its targets
    final_epoch: int | None = None
    times: list[int] = field(default_factory=list)  # what it has said since the last look
    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)

    @property
    def epoch_work(self) -> float:
        """Useful CPU seconds of an epoch."""
        return self.job.work / self.job.epochs

    @property
    def latency(self) -> float | None:
        """The response time of a serving job, None while it answers nobody."""
        if self.cores <= 0:
            return None
        request = self.job.request
        return max(request, request / self.cores - self.job.think)


class Machine:
    """One node: its jobs, and what the policy knows of them."""

    def __init__(self, spec: HostSpec) -> None:
        """Nothing runs yet."""
        self.spec = spec
        self.history = HostHistory(spec.name, spec.cpus)
        self.history.cpuset = format_cpus(range(max(1, math.ceil(spec.cpus))))
        self.runs: dict[str, Run] = {}
        self.now = 0.0
        self.memory = 0
        self.gpus = 0  # handed out
        self.version = 0
        self.spent = 0.0  # CPU seconds handed out
        self.listens = False
        self.said: list[tuple[Run, float, str, float, int | None]] = []
        self.realisation: Realisation | None = None

    def take(self, job: Job) -> None:
        """Set memory and GPUs aside for a job."""
        self.memory += job.memory
        self.gpus += job.gpus

    def release(self, job: Job) -> None:
        """Give back what was set aside."""
        self.memory -= job.memory
        self.gpus -= job.gpus

    def advance(self, now: float, *, talk: bool) -> None:
        """Let the jobs work until a time; with `talk` keep what they report."""
        span = now - self.now
        if span > 0:
            for run in self.runs.values():
                self._work(run, span, talk)
        self.now = max(now, self.now)

    def _work(self, run: Run, span: float, talk: bool) -> None:
        job, before = run.job, run.done
        run.cpu += run.cores * span
        self.spent += run.cores * span
        run.result.cpu += run.cores * span
        if run.starting > 0:
            run.starting = max(0.0, run.starting - run.cores * span)
            if run.starting <= _ROUND_OFF:
                run.starting = 0.0
                run.until = self.now + span + job.duration
            return
        if job.serves:
            latency = run.latency
            if latency is not None:
                run.result.served += span
                if satisfies(latency, job.qoe):
                    run.result.satisfied += span
                self._answer(run, span, latency, talk)
            return
        run.done = min(job.work, before + run.rate * span)
        last = min(job.epochs, int(run.done / run.epoch_work + _ROUND_OFF))
        for epoch in range(run.epoch + 1, last + 1):
            if not talk and epoch > 1 and epoch not in (run.first_epoch, run.final_epoch):
                continue
            time = min(self.now + span, self.now + (epoch * run.epoch_work - before) / run.rate)
            if epoch == run.first_epoch:
                run.result.first = time
            if epoch == run.final_epoch:
                run.result.final = time
            if talk or epoch == 1:
                self._say(run, time, job.reported(epoch), epoch)
        if last > run.epoch:
            run.epoch = last

    def _answer(self, run: Run, span: float, latency: float, talk: bool) -> None:
        """Report the response time every two seconds, whenever anybody looks."""
        first = math.floor((self.now + _ROUND_OFF) / REPORT_S) + 1
        last = math.floor((self.now + span + _ROUND_OFF) / REPORT_S)
        for number in range(first, last + 1):
            if talk or run.epoch == 0:
                self._say(run, number * REPORT_S, latency)
            run.epoch += 1

    def _say(self, run: Run, time: float, value: float, step: int | None = None) -> None:
        if self.listens:
            metric = LATENCY if run.job.serves else run.job.curve.metric
            self.said.append((run, time, metric, value, step))
        run.times.append(round(time * MICRO))
        run.values.append(value)
        run.steps.append(step)

    def sample(self, requirements: Requirements) -> bool:
        """Tell the policy's memory what has happened; tell whether a target was met."""
        micros, met = round(self.now * MICRO), False
        self.history.sampled_at, self.history.actions = micros, ()
        for run in self.runs.values():
            track = run.track
            if not track.samples or track.samples[-1][0] < micros:
                track.add_samples([micros], [run.cpu])
            if run.times:
                metric = LATENCY if run.job.serves else run.job.curve.metric
                before = (track.met_first, track.met_final)
                track.add_points(
                    metric, run.times, run.values, run.steps, curves=requirements.curves
                )
                met = met or (track.met_first, track.met_final) != before
                track.step, track.epoch = run.steps[-1], float(run.epoch)
                run.times, run.values, run.steps = [], [], []
        return met

    def share(self) -> None:
        """Share the CPUs anew."""
        runs = list(self.runs.values())
        for run in runs:
            run.want = self._want(run)
            run.cores = run.rate = 0.0
        wants = [run.want for run in runs]
        for part, limits in turns([run.limits for run in runs]):
            for at, cores in enumerate(allocate(wants, limits, self.spec.cpus)):
                run, job = runs[at], runs[at].job
                run.cores += part * cores
                if run.starting > 0:
                    continue
                left = None
                if job.threads > 1 and job.spin > 0 and run.limits.cpus is not None:
                    left = beside(at, wants, limits, self.spec.cpus)
                run.rate += part * useful(
                    cores, limits[at], job.threads, self.spec.cpus, job.spin, left
                )

    def _want(self, run: Run) -> float:
        if run.starting > 0:
            return min(1.0, self.spec.cpus)
        if run.job.serves:
            return run.job.request / (run.job.request + run.job.think)
        return min(float(run.job.threads), self.spec.cpus)

    def obey(self, found: Realisation) -> None:
        """Set what a plan sets."""
        self.realisation = found
        for key, run in self.runs.items():
            limits = run.limits
            limits.group = None
            setting = found.settings.get(key, {})
            if found.takes_turns and "turn_s" in setting:
                limits.group, limits.turn_s = setting["group"], setting["turn_s"]
            if "cpus" in setting:
                limits.cpus = setting["cpus"]
            if "cpu_weight" in setting:
                limits.weight = setting["cpu_weight"]
            if "cpuset" in setting:
                cpus = setting["cpuset"]
                limits.own = None if cpus is None else len(parse_cpus(cpus))

    def next_event(self, *, watch: bool) -> float:
        """Return when something happens by itself: a job ends, has started up, says its first word
        or, with `watch`, meets a target."""
        soonest = math.inf
        for run in self.runs.values():
            if run.starting > 0:
                if run.cores > 0:
                    soonest = min(soonest, self.now + run.starting / run.cores)
                continue
            if run.job.serves:
                soonest = min(soonest, run.until)
                if run.epoch == 0:
                    number = math.floor((self.now + _ROUND_OFF) / REPORT_S) + 1
                    soonest = min(soonest, number * REPORT_S)
                continue
            if run.rate <= 0:
                continue
            goals = [run.job.work]
            if run.epoch == 0:
                goals.append(run.epoch_work)
            if watch:
                goals += [epoch * run.epoch_work for epoch in (run.first_epoch, run.final_epoch)
                          if epoch is not None and epoch > run.epoch]  # fmt: skip
            for goal in goals:
                if goal > run.done:
                    soonest = min(soonest, self.now + (goal - run.done) / run.rate)
        return max(soonest, self.now + _STEP)

    def finished(self) -> list[Run]:
        """Return the jobs that have done their work, or served their time."""
        return [
            run for run in self.runs.values()
            if (run.starting == 0 and self.now + _ROUND_OFF >= run.until if run.job.serves
                else run.job.work - run.done <= _ROUND_OFF * max(1.0, run.job.work))
        ]  # fmt: skip


def first_meeting(job: Job, target: float | None) -> int | None:
    """Return the number of the first point that meets a target, None where none does."""
    if target is None:
        return None
    falling = job.curve.value(1.0) <= job.curve.value(0.0)
    for epoch in range(1, job.epochs + 1):
        value = job.reported(epoch)
        if value <= target if falling else value >= target:
            return epoch
    return None


def labels_of(job: Job, *, clairvoyant: bool) -> Mapping[str, str]:
    """Return the labels that say what a job is to reach, and with `clairvoyant` how long it is."""
    found = {}
    if job.serves:
        if job.qoe is not None:
            found[QOE] = repr(job.qoe)
        return found
    if job.first is not None:
        falling = job.curve.value(1.0) <= job.curve.value(0.0)
        found |= {METRIC: job.curve.metric, TARGET: repr(job.first),
                  OBJECTIVE: "min" if falling else "max"}  # fmt: skip
        if job.final is not None:
            found[FINAL] = repr(job.final)
    if clairvoyant:
        found[EPOCHS] = str(job.epochs)
    return found


def labels_text(job: Job) -> str | None:
    """Return a job's labels as a container row has them."""
    found = labels_of(job, clairvoyant=False)
    return json.dumps(found) if found else None
