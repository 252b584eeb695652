"""Jobs on machines in virtual time, under the very policies and settings of dl-plan.

Between two events nothing changes: every job has its cores, works at its speed and reports when an
epoch's work is done. Events are arrivals, ends, first words, targets met and rounds of the policy.
At each the machine's jobs are brought up to now, the policy is asked if a round is due, and the
CPUs are shared anew.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

from dltools.observations.outcomes import JobResult
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.base import ActionKind, Policy
from dltools.plan.policy.container_history import MICRO, ContainerHistory
from dltools.plan.realisation.mode import RealisationOptions
from dltools.plan.rounds import Rounds
from dltools.sim.contention import Limits
from dltools.sim.host import Machine, Run, first_meeting, labels_of
from dltools.sim.workload import Job, Workload

_LOOK = "look"

Observer = Callable[[float, Machine], None]
"""What is called with a time (seconds) and a machine that has been brought up to it."""


class Simulation:
    """One workload under one policy."""

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        parameters: Any,
        options: RealisationOptions,
        *,
        clairvoyant: bool = False,
        observer: Observer | None = None,
        every_s: float = 5.0,
    ) -> None:
        """`clairvoyant` lets the policy know how many epochs each job will train.

        `observer` is called for each machine every `every_s` seconds; that changes nothing.
        """
        self._rounds = Rounds(policy, parameters, options, {})
        self._requirements = self._rounds.requirements
        self._talk = bool(self._requirements.windows or self._requirements.curves or observer)
        self._clairvoyant = clairvoyant
        self._observer = observer
        self._every_s = every_s
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
        machine.sample(self._requirements)  # what they said last
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
        run = Run(job, self._track(job, machine, now), result, starting=job.startup)
        if job.serves:
            run.until = now + job.duration
        else:
            run.first_epoch, run.final_epoch = (
                first_meeting(job, job.first),
                first_meeting(job, job.final),
            )
        self._add(machine, run, now)

    def _place(self, job: Job) -> Machine | None:
        """Return the machine with fewest jobs that has room."""
        if job.memory == 0 and job.gpus == 0:
            while True:
                count, number, name = self._emptiest[0]
                if count == len(self._machines[name].runs):
                    return self._machines[name]
                heapq.heapreplace(self._emptiest, (len(self._machines[name].runs), number, name))
        room = [
            machine for machine in self._machines.values()
            if machine.spec.holds(job, machine.memory, machine.gpus)
        ]  # fmt: skip
        return min(room, key=lambda m: (len(m.runs), self._order[m.spec.name]), default=None)

    def _add(self, machine: Machine, run: Run, now: float) -> None:
        self._bring(machine, now)
        machine.runs[run.track.id] = run
        machine.take(run.job)
        machine.history.containers[run.track.id] = run.track
        self._count(machine)
        self._look(machine)

    def _remove(self, machine: Machine, run: Run) -> None:
        del machine.runs[run.track.id]
        del machine.history.containers[run.track.id]
        machine.release(run.job)
        self._count(machine)

    def _count(self, machine: Machine) -> None:
        name = machine.spec.name
        heapq.heappush(self._emptiest, (len(machine.runs), self._order[name], name))

    def _land(self, run: Run, machine: Machine, now: float) -> None:
        """Let a migrated job go on where it has been moved to."""
        run.result.node = machine.spec.name
        run.track = self._track(run.job, machine, now, run.result.migrations)
        run.limits, run.starting, run.cpu = Limits(), run.job.startup, 0.0
        machine.release(run.job)  # what was kept for it
        self._add(machine, run, now)

    def _track(self, job: Job, machine: Machine, now: float, moves: int = 0) -> ContainerHistory:
        micros = round(now * MICRO)
        suffix = f"#{moves}" if moves else ""
        track = ContainerHistory(
            f"{job.name}{suffix}", job.name, machine.spec.name, micros, started=micros,
            threads=job.threads,
        )  # fmt: skip
        track.label(labels_of(job, clairvoyant=self._clairvoyant))
        return track

    # Deciding

    def _look(self, machine: Machine) -> None:
        """Run a round if one is due, share the CPUs anew, and note what comes next."""
        target_met = machine.sample(self._requirements)
        found = self._rounds.run(
            machine.history, lambda: self._histories(machine), target_met=target_met
        )
        if found is not None:
            machine.obey(found)
            for action in machine.history.actions:
                job = machine.runs.get(action.job_id)
                if action.kind is ActionKind.MIGRATE and job is not None:
                    self._migrate(machine, job, self._machines[action.to])
        machine.share()
        self._plan_next(machine)

    def _histories(self, machine: Machine) -> list[HostHistory]:
        """Return the histories of all hosts, brought up to the time of one that has been."""
        for other in self._machines.values():
            if other is not machine:
                other.advance(machine.now, talk=self._talk)
                other.sample(self._requirements)
        return [other.history for other in self._machines.values()]

    def _migrate(self, machine: Machine, run: Run, target: Machine) -> None:
        """Send a job on its way, if there is room for it, which is kept for it until it lands."""
        if not target.spec.holds(run.job, target.memory, target.gpus):
            return
        self._remove(machine, run)
        target.take(run.job)
        run.result.migrations += 1
        run.cores = run.rate = 0.0
        self._push(machine.now + run.job.checkpoint, target.spec.name, 0, run)

    def _plan_next(self, machine: Machine) -> None:
        machine.version += 1
        time = machine.next_event(watch=self._requirements.targets)
        timer = machine.history.timer
        if timer.interval_s is not None and timer.last is not None and timer.run_ids:
            time = min(time, max(machine.now, timer.last / MICRO + timer.interval_s))
        due = machine.history.queue.due
        if due is not None and machine.runs:
            time = min(time, max(machine.now, due / MICRO))
        if time < math.inf:
            self._push(time, machine.spec.name, machine.version, None)
