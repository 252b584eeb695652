"""Runs jobs on hosts in virtual time, under the policies and realisations of dl-plan.

Between two events nothing changes: each job keeps its cores and its speed, and reports when the
work of an epoch is done. An event is an arrival, the end of a start-up, of a work or of a job, or a
look of the policy: after a start or an exit, a first report or a met target, and when a round or a
turn of the queue is due. At each event the jobs of its host work up to now, and the CPUs are shared
anew. `dltools.sim.agenda` says how soon a look follows its cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.notation.times import MICRO
from dltools.observations.outcomes import JobResult
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.hosts.rounds import Rounds
from dltools.plan.policy.interface import ActionKind, Policy
from dltools.plan.realisation.mode import RealisationOptions
from dltools.plan.signals.container_history import ContainerHistory, Standing
from dltools.plan.signals.in_force import Member, Membership, Owner
from dltools.plan.signals.use import Use
from dltools.sim.agenda import AT_ONCE, Agenda, Arrival, Event, Landing, Observation, Reaction, Wake
from dltools.sim.simulated_host import SimulatedHost, host_for
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.workload import Job, Workload, labels_of, role_of

_LEAST_STEP = 1e-6  # seconds; an event that is sooner than the clock can tell would never come

_LOOKS_S = (2.0, 5.0, 12.0)
"""Seconds after a change at which the policy looks again. By then it has three samples, it has seen
whether CPUs stay idle, and jobs that fell asleep count as idle."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Calls `observe` every `every_s` seconds for each host, with the time (s) and the host. It
    changes nothing."""

    observe: Callable[[float, SimulatedHost], None]
    every_s: float = 5.0


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
        reaction: Reaction = AT_ONCE,
    ) -> None:
        """Set up the hosts and the arrivals.

        `clairvoyant` lets the policy know how many epochs each job will train. `reaction`: how soon
        settings follow an event.
        """
        self._rounds = Rounds(policy, parameters, options, {})
        self._requirements = self._rounds.requirements
        self._decides = self._requirements.shares or self._requirements.cluster
        self._reports_all = bool(
            self._requirements.windows
            or self._requirements.curves
            or observer
            or self._requirements.shares
        )
        self._clairvoyant = clairvoyant
        self._observer = observer
        self._reaction = reaction
        is_observed = observer is not None
        self._hosts = {
            spec.name: SimulatedHost(spec, is_observed=is_observed) for spec in workload.hosts
        }
        for host in self._hosts.values():
            host.history.has_servers = self._requirements.servers
        self._jobs = workload.jobs
        self._results: dict[str, JobResult] = {}
        self._waiting: list[Job] = []
        self._agenda = Agenda()
        self.events = 0

    def run(self, until: float = math.inf) -> list[JobResult]:
        """Run until all jobs have ended, or until a time (s); return the results of the jobs in
        order of arrival."""
        for job in self._jobs:
            self._agenda.add(job.arrival, Arrival(job))
        for host in self._hosts.values() if self._requirements.cluster else ():
            self._note_change(host)  # a host that is idle from the start may take a job, too
            self._plan_next_event(host)
        for host in self._hosts.values() if self._observer else ():
            self._agenda.add(0.0, Observation(host))
        while (time := self._agenda.next_time) is not None and time <= until:
            self._handle(*self._agenda.pop())
        return [
            self._results.get(job.name) or JobResult(job.name, "", job.arrival, user=job.user)
            for job in self._jobs
        ]

    # Events

    def _handle(self, now: float, event: Event) -> None:
        if isinstance(event, Wake) and event.version != event.host.version:
            return  # the host has changed since
        self.events += 1
        if isinstance(event, Wake):
            self._bring_up_to(event.host, now)
            self._update(event.host)
        elif isinstance(event, Arrival):
            self._arrive(event.job, now)
        elif isinstance(event, Landing):
            self._land(event.job, event.host, now)
        else:
            self._observe(event.host, now)

    def _observe(self, host: SimulatedHost, now: float) -> None:
        if self._observer is None:
            return
        host.advance(now, reports_all=True)
        self._observer.observe(now, host)
        if self._agenda.has_work():
            self._agenda.add(now + self._observer.every_s, Observation(host))

    def _bring_up_to(self, host: SimulatedHost, now: float) -> None:
        """Let a host's jobs work until now, and remove those that have ended."""
        host.advance(now, reports_all=self._reports_all)
        ended = host.finished_jobs()
        if not ended:
            return
        for job in ended:
            job.result.finish = now
            host.remove(job)
        self._note_change(host)
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            self._agenda.add(now, Arrival(one))

    def _arrive(self, job: Job, now: float) -> None:
        host = host_for(job, self._hosts)
        if host is None:
            self._waiting.append(job)
            return
        result = JobResult(
            job.name,
            host.spec.name,
            job.arrival,
            start=now,
            waited=now - job.arrival,
            user=job.user,
        )
        self._results[job.name] = result
        started = SimulatedJob(
            job,
            self._history(job, host, now),
            result,
            job.startup,
            job.shutdown,
            watches_targets=self._requirements.targets,
        )
        if job.serves:
            started.ends_at = now + job.duration
        else:
            started.first_epoch = job.epoch_that_meets(job.first)
            started.final_epoch = job.epoch_that_meets(job.final)
        self._add(host, started, now)

    def _land(self, job: SimulatedJob, host: SimulatedHost, now: float) -> None:
        """Start a job on the host that it has migrated to."""
        job.result.node = host.spec.name
        job.history = self._history(job.job, host, now, job.result.migrations)
        job.startup_left, job.cpu = job.job.startup, 0.0
        job.begin_limits()
        host.release(job.job)  # it was reserved when the job left its old host
        self._add(host, job, now)

    def _add(self, host: SimulatedHost, job: SimulatedJob, now: float) -> None:
        self._bring_up_to(host, now)
        host.add(job)
        self._note_change(host)
        self._update(host)

    def _note_change(self, host: SimulatedHost) -> None:
        """Schedule a look at a host on which a job has just started or ended."""
        host.changed_at = min(host.changed_at, self._reaction.to_event(host.now))
        host.look_at = min(host.look_at, host.changed_at)

    def _history(
        self, job: Job, host: SimulatedHost, now: float, migrations: int = 0
    ) -> ContainerHistory:
        """Return the history, for the policy, of a job that starts on a host."""
        micros = round(now * MICRO)
        container_id = f"{job.name}#{migrations}" if migrations else job.name
        history = ContainerHistory(
            container_id,
            job.name,
            micros,
            use=Use(micros, job.all_threads + job.idle_threads),
            standing=Standing(observed=role_of(job, is_remote=host.spec.remote)),
            owner=Owner(job.cpus or None, job.cpu_weight / DEFAULT_CPU_WEIGHT, is_known=True),
        )
        if job.members > 1:
            names = [f"{job.name}-{number}" for number in range(job.members)]
            members = tuple(Member(name, name) for name in names)
            history.membership = Membership(job.name, members, job.members)
        history.label(labels_of(job, clairvoyant=self._clairvoyant))
        return history

    # Rounds

    def _sample(self, host: SimulatedHost) -> bool:
        return host.sample(round(host.now * MICRO), self._requirements)

    def _update(self, host: SimulatedHost) -> None:
        """Let the policy look if that is due, share the CPUs anew, and schedule the next event."""
        if host.now >= host.look_at:
            self._look(host)
        if host.share_cpus() and len(host.jobs) > 1 and self._requirements.shares:
            host.looks = [host.now + seconds for seconds in _LOOKS_S]
        self._plan_next_event(host)

    def _look(self, host: SimulatedHost) -> None:
        """Sample a host, and run a round if one is due."""
        host.changed_at = math.inf
        if not self._decides:
            host.forget_reports()
            return
        if host.looks and host.now >= host.looks[0]:
            host.looks = [time for time in host.looks if time > host.now]
            host.history.containers_changed()
        target_met = self._sample(host)
        found = self._rounds.run(host.history, lambda: self._histories(host), target_met=target_met)
        if found is None:
            return
        host.apply_settings(found)
        for action in host.history.actions:
            job = host.jobs.get(action.job_id)
            if action.kind is ActionKind.MIGRATE and job is not None:
                self._migrate(host, job, self._hosts[action.to])

    def _histories(self, host: SimulatedHost) -> dict[str, HostHistory]:
        """Return the histories of all hosts, updated to the time of this one."""
        for other in self._hosts.values():
            if other is not host:
                other.advance(host.now, reports_all=self._reports_all)
                self._sample(other)
        return {name: other.history for name, other in self._hosts.items()}

    def _migrate(self, host: SimulatedHost, job: SimulatedJob, target: SimulatedHost) -> None:
        """Let a job leave for another host, if that has room. The room is reserved until the job
        lands."""
        if not target.has_room_for(job.job):
            return
        host.remove(job)
        target.reserve(job.job)
        job.result.migrations += 1
        job.cores = job.rate = 0.0
        self._agenda.add(host.now + job.job.checkpoint, Landing(job, target))

    def _plan_next_event(self, host: SimulatedHost) -> None:
        host.version += 1
        host.look_at = max(host.now + _LEAST_STEP, self._next_look(host))
        time = min(host.look_at, max(host.now + _LEAST_STEP, host.next_change()))
        if time < math.inf:
            self._agenda.add(time, Wake(host, host.version))

    def _next_look(self, host: SimulatedHost) -> float:
        """Return when the policy next looks at a host (s)."""
        if not host.jobs:
            return host.changed_at
        timer, due = host.history.timer, host.history.queue.due
        time = min(host.changed_at, self._reaction.to_report(host.next_news()))
        if host.looks:
            time = min(time, self._reaction.to_report(host.looks[0]))
        if timer.interval_s is not None and timer.last is not None and timer.run_ids:
            time = min(time, self._reaction.to_interval(timer.last / MICRO, timer.interval_s))
        if due:  # 0 means the change of which changed_at has the time
            time = min(time, self._reaction.to_due_time(due / MICRO))
        return time
