"""Jobs on machines in virtual time, under the very policies and settings of dl-plan.

Between two events nothing changes: every job has its cores, works at its speed and reports when an
epoch's work is done. Events are arrivals, ends, first words, targets met and rounds of the policy.
At each the machine's jobs are brought up to now, the policy is asked if a round is due, and the
CPUs are shared anew.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.cpus import format_cpus, parse_cpus
from dltools.labels import EPOCHS, FINAL, METRIC, OBJECTIVE, QOE, TARGET
from dltools.plans import Op
from dltools.policy.base import Cluster, Deed, Needs, Policy, State
from dltools.policy.history import MICRO, Track
from dltools.realize import Choice, Realized, choose, realize
from dltools.sim.machine import Limits, allocate, useful
from dltools.sim.outcome import JobResult
from dltools.sim.workload import Job, NodeSpec, Workload
from dltools.site import Site

LATENCY = "latency_seconds"
REPORT_S = 2.0
"""How often a serving job says its response time."""
SATISFIED = 0.10
"""Part of a response-time target within which it counts as met (DQoES's alpha)."""

_ROUND_OFF = 1e-9
_STEP = 1e-6  # seconds; what comes sooner than the clock can tell would never come

_LOOK = "look"

Observer = Callable[[float, "Machine"], None]
"""What is called with a time (seconds) and a machine that has been brought up to it."""


@dataclass(slots=True)
class Run:
    """A job on a machine. `done` is its useful work, `cpu` what it has used, `epoch` how many it
    has reported; `ready` when it has started up; `cores` and `rate` hold until the next event."""

    job: Job
    track: Track
    result: JobResult
    ready: float
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

    def __init__(self, spec: NodeSpec) -> None:
        """Nothing runs yet."""
        self.spec = spec
        self.site = Site(spec.name, spec.cpus)
        self.site.cpuset = format_cpus(range(max(1, math.ceil(spec.cpus))))
        self.runs: dict[str, Run] = {}
        self.now = 0.0
        self.memory = 0
        self.version = 0
        self.spent = 0.0  # CPU seconds handed out
        self.listens = False
        self.said: list[tuple[Run, float, str, float, int | None]] = []
        self.realized: Realized | None = None

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
        if job.serves:
            latency = run.latency
            if self.now >= run.ready and latency is not None:
                run.result.served += span
                if job.qoe is not None and abs(job.qoe - latency) <= SATISFIED * job.qoe:
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
                self._say(run, time, job.curve.reported(epoch / job.epochs, job.name, epoch), epoch)
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

    def sample(self, needs: Needs) -> bool:
        """Tell the policy's memory what has happened; tell whether a target was met."""
        micros, met = round(self.now * MICRO), False
        self.site.settled, self.site.orders = micros, ()
        for run in self.runs.values():
            track = run.track
            if not track.samples or track.samples[-1][0] < micros:
                track.add_samples([micros], [run.cpu])
            if run.times:
                metric = LATENCY if run.job.serves else run.job.curve.metric
                before = (track.met_first, track.met_final)
                track.add_points(metric, run.times, run.values, run.steps, curves=needs.curves)
                met = met or (track.met_first, track.met_final) != before
                track.step, track.epoch = run.steps[-1], float(run.epoch)
                run.times, run.values, run.steps = [], [], []
        return met

    def share(self) -> None:
        """Share the CPUs anew."""
        runs = list(self.runs.values())
        for run in runs:
            run.want = self._want(run)
        wants, limits = [run.want for run in runs], [run.limits for run in runs]
        for run, cores in zip(runs, allocate(wants, limits, self.spec.cpus), strict=True):
            run.cores = cores
            run.rate = useful(cores, run.limits, run.job.threads, self.spec.cpus, run.job.spin)

    def _want(self, run: Run) -> float:
        if self.now + _ROUND_OFF < run.ready:
            return 0.0
        if run.job.serves:
            return run.job.request / (run.job.request + run.job.think)
        return min(float(run.job.threads), self.spec.cpus)

    def obey(self, found: Realized) -> None:
        """Set what a plan sets."""
        self.realized = found
        turns = {s["group"]: s["turn_s"] for s in found.settings.values() if "turn_s" in s}
        cycle = sum(turns.values())
        for key, run in self.runs.items():
            limits = run.limits
            limits.turn_part = None
            setting = found.settings.get(key, {})
            if found.op is Op.ROTATE and "turn_s" in setting:
                limits.turn_part, limits.turn_s = setting["turn_s"] / cycle, setting["turn_s"]
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
            if self.now < run.ready:
                soonest = min(soonest, run.ready)
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
            if (self.now + _ROUND_OFF >= run.until if run.job.serves
                else run.job.work - run.done <= _ROUND_OFF * max(1.0, run.job.work))
        ]  # fmt: skip


class Simulation:
    """One workload under one policy."""

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        parameters: Any,
        choice: Choice,
        *,
        clairvoyant: bool = False,
        observer: Observer | None = None,
        every_s: float = 5.0,
    ) -> None:
        """`clairvoyant` lets the policy know how many epochs each job will train.

        `observer` is called for each machine every `every_s` seconds; that changes nothing.
        """
        self._policy = policy
        self._parameters = parameters
        self._choice = choice
        self._needs: Needs = policy.needs(parameters)
        self._talk = bool(self._needs.windows or self._needs.curves or observer)
        self._clairvoyant = clairvoyant
        self._observer = observer
        self._every_s = every_s
        self._state: State = {}
        self._machines = {spec.name: Machine(spec) for spec in workload.nodes}
        for machine in self._machines.values():
            machine.listens = observer is not None
        self._order = {name: number for number, name in enumerate(self._machines)}
        self._jobs = workload.jobs
        self._results: dict[str, JobResult] = {}
        self._waiting: list[Job] = []
        self._events: list[tuple[float, int, str, int, Any]] = []
        self._number = 0
        self._emptiest = [(0, number, name) for name, number in self._order.items()]
        heapq.heapify(self._emptiest)
        self.events = 0

    def run(self, until: float = math.inf) -> list[JobResult]:
        """Run until all jobs have ended, or a time; return their results in order of arrival."""
        for job in self._jobs:
            self._push(job.arrival, "", 0, job)
        for name in self._machines if self._observer else ():
            self._push(0.0, name, 0, _LOOK)
        while self._events and self._events[0][0] <= until:
            now, _, name, version, what = heapq.heappop(self._events)
            if what is None and self._machines[name].version != version:
                continue  # something has happened there since
            self.events += 1
            if what is _LOOK:
                self._observe(self._machines[name], now)
            elif what is None:
                self._wake(self._machines[name], now)
            elif isinstance(what, Job):
                self._arrive(what, now)
            else:
                self._land(what, self._machines[name], now)
        return [
            self._results.get(job.name) or JobResult(job.name, "", job.arrival)
            for job in self._jobs
        ]

    def _push(self, time: float, name: str, version: int, what: Any) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, name, version, what))

    # Events

    def _observe(self, machine: Machine, now: float) -> None:
        machine.advance(now, talk=True)
        if self._observer is not None:
            self._observer(now, machine)
        if self._events and any(what is not _LOOK for *_, what in self._events):
            self._push(now + self._every_s, machine.spec.name, 0, _LOOK)

    def _wake(self, machine: Machine, now: float) -> None:
        self._bring(machine, now)
        self._look(machine)

    def _bring(self, machine: Machine, now: float) -> None:
        """Bring a machine up to now, and let those go that have ended."""
        machine.advance(now, talk=self._talk)
        ended = machine.finished()
        if not ended:
            return
        machine.sample(self._needs)  # what they said last
        for run in ended:
            run.result.finish = now
            self._remove(machine, run)
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            self._push(now, "", 0, job)

    def _arrive(self, job: Job, now: float) -> None:
        machine = self._place(job)
        if machine is None:
            self._waiting.append(job)
            return
        result = JobResult(job.name, machine.spec.name, job.arrival, start=now)
        self._results[job.name] = result
        run = Run(job, self._track(job, machine, now), result, ready=now + job.startup)
        if job.serves:
            run.until = run.ready + job.duration
        else:
            run.first_epoch, run.final_epoch = _meets(job, job.first), _meets(job, job.final)
        self._add(machine, run, now)

    def _place(self, job: Job) -> Machine | None:
        """Return the machine with fewest jobs that has room."""
        if job.memory == 0:
            while True:
                count, number, name = self._emptiest[0]
                if count == len(self._machines[name].runs):
                    return self._machines[name]
                heapq.heapreplace(self._emptiest, (len(self._machines[name].runs), number, name))
        room = [
            machine for machine in self._machines.values()
            if not machine.spec.memory or machine.memory + job.memory <= machine.spec.memory
        ]  # fmt: skip
        return min(room, key=lambda m: (len(m.runs), self._order[m.spec.name]), default=None)

    def _add(self, machine: Machine, run: Run, now: float) -> None:
        self._bring(machine, now)
        machine.runs[run.track.id] = run
        machine.memory += run.job.memory
        machine.site.tracks[run.track.id] = run.track
        self._count(machine)
        self._look(machine)

    def _remove(self, machine: Machine, run: Run) -> None:
        del machine.runs[run.track.id]
        del machine.site.tracks[run.track.id]
        machine.memory -= run.job.memory
        self._count(machine)

    def _count(self, machine: Machine) -> None:
        name = machine.spec.name
        heapq.heappush(self._emptiest, (len(machine.runs), self._order[name], name))

    def _land(self, run: Run, machine: Machine, now: float) -> None:
        """Let a migrated job go on where it has been moved to."""
        run.result.node = machine.spec.name
        run.track = self._track(run.job, machine, now, run.result.migrations)
        run.limits, run.ready, run.cpu = Limits(), now + run.job.startup, 0.0
        self._add(machine, run, now)

    def _track(self, job: Job, machine: Machine, now: float, moves: int = 0) -> Track:
        micros = round(now * MICRO)
        suffix = f"#{moves}" if moves else ""
        track = Track(f"{job.name}{suffix}", job.name, machine.spec.name, micros, started=micros,
                      threads=job.threads)  # fmt: skip
        track.label(_labels(job, clairvoyant=self._clairvoyant))
        return track

    # Deciding

    def _look(self, machine: Machine) -> None:
        """Ask the policy if a round is due, share the CPUs anew, and note what comes next."""
        met = machine.sample(self._needs)
        site = machine.site
        jobs = site.open_round(self._needs, met=met)
        if jobs:
            nodes = {site.name: site.node(jobs)}
            if self._needs.cluster:
                nodes = {name: self._seen(other, machine) for name, other in self._machines.items()}
            cluster = Cluster(site.settled or 0, site.name, nodes, site.rounds.itval_s or 0.0)
            decision = self._policy.decide(cluster, self._parameters, self._state)
            site.close_round(decision, self._needs, jobs)
            self._state = decision.state
            node = site.node(jobs)
            machine.obey(realize(choose(self._choice, node), node, site.cpuset))
            for order in decision.orders:
                if order.deed is Deed.MIGRATE and order.job_id in machine.runs:
                    self._migrate(machine, machine.runs[order.job_id], order.to)
        machine.share()
        self._plan_next(machine)

    def _seen(self, other: Machine, machine: Machine) -> Any:
        if other is not machine:
            other.advance(machine.now, talk=self._talk)
            other.sample(self._needs)
        return other.site.node()

    def _migrate(self, machine: Machine, run: Run, to: str) -> None:
        self._remove(machine, run)
        run.result.migrations += 1
        run.cores = run.rate = 0.0
        self._push(machine.now + run.job.checkpoint, to, 0, run)

    def _plan_next(self, machine: Machine) -> None:
        machine.version += 1
        time = machine.next_event(watch=self._needs.targets)
        rounds = machine.site.rounds
        if rounds.itval_s is not None and rounds.last is not None and rounds.members:
            time = min(time, max(machine.now, rounds.last / MICRO + rounds.itval_s))
        if time < math.inf:
            self._push(time, machine.spec.name, machine.version, None)


def _meets(job: Job, target: float | None) -> int | None:
    """Return the number of the first point that meets a target, None where none does."""
    if target is None:
        return None
    falling = job.curve.value(1.0) <= job.curve.value(0.0)
    for epoch in range(1, job.epochs + 1):
        value = job.curve.reported(epoch / job.epochs, job.name, epoch)
        if value <= target if falling else value >= target:
            return epoch
    return None


def _labels(job: Job, *, clairvoyant: bool) -> Mapping[str, str]:
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
    found = _labels(job, clairvoyant=False)
    return json.dumps(found) if found else None
