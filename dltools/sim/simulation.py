"""Runs jobs on hosts in virtual time, under the policies and realisations of dl-plan.

Between two events nothing changes: each job keeps its cores and its speed, and reports when the
work of an epoch is done. An event is an arrival, the end of a start-up, of a work or of a job, or a
look of the policy: after a start or an exit, a first report or a met target, and when a round or a
turn of the queue is due. At each event the jobs of its host work up to now, and the CPUs are shared
anew. `dltools.sim.reaction` says how soon a look follows its cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dltools.observations.outcomes import JobResult
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.hosts.rounds import Rounds
from dltools.plan.policy.interface import ActionKind, Policy
from dltools.plan.realisation.options import RealisationOptions
from dltools.sim.agenda import Agenda, Arrival, Event, Landing, Observation, Wake
from dltools.sim.histories import new_history
from dltools.sim.job_shares import give_portions
from dltools.sim.reaction import AT_ONCE, LEAST_STEP, Reaction
from dltools.sim.simulated_host import SimulatedHost, host_for
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.training_and_serving import Portion, Readers
from dltools.sim.workload import Job, Workload


@dataclass(frozen=True, slots=True)
class Observer:
    """Looks at each host again and again. It changes nothing."""

    observe: Callable[[float, SimulatedHost], None]
    """What is called with the time (s) and the host."""

    every_s: float = 5.0
    """Seconds between two looks."""


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
        """Set up the hosts and the arrivals. `clairvoyant`: the policy knows how many epochs each
        job will train. `reaction`: how soon settings follow an event."""
        self._rounds = Rounds(policy, parameters, options, {})
        self._requirements = needs = self._rounds.requirements
        self._decides = needs.shares or needs.cluster
        reads_all = bool(needs.windows or needs.curves or needs.shares or observer)
        self._readers = Readers(reads_all, needs.targets)
        self._clairvoyant = clairvoyant
        self._observer = observer
        self._hosts: dict[str, SimulatedHost] = {}
        for spec in workload.hosts:
            host = SimulatedHost(spec, is_observed=observer is not None, reaction=reaction)
            host.history.has_servers = needs.servers
            self._hosts[spec.name] = host
        self._results = {
            job.name: JobResult(job.name, "", job.arrival, user=job.user) for job in workload.jobs
        }
        self._waiting: list[Job] = []
        self._agenda = Agenda()
        for job in workload.jobs:
            self._agenda.add(job.arrival, Arrival(job))
        self.events = 0

    def run(self, until: float = math.inf) -> list[JobResult]:
        """Run until all jobs have ended, or until a time (s); return the results of the jobs in
        order of arrival."""
        # A host that is idle from the start may take a job, too.
        for host in self._hosts.values() if self._requirements.cluster else ():
            host.looks.note_change(host.now)
            self._plan_next_event(host)
        for host in self._hosts.values() if self._observer else ():
            self._agenda.add(0.0, Observation(host))
        while (time := self._agenda.next_time) is not None and time <= until:
            self._handle(*self._agenda.pop())
        return list(self._results.values())

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
            event.host.room.release(event.job.job)  # reserved when the job left its old host
            self._start(event.job, event.host, now)
        else:
            self._observe(event.host, now)

    def _observe(self, host: SimulatedHost, now: float) -> None:
        if self._observer is None:
            return
        host.advance(now)
        self._observer.observe(now, host)
        if self._agenda.has_work():
            self._agenda.add(now + self._observer.every_s, Observation(host))

    def _bring_up_to(self, host: SimulatedHost, now: float) -> None:
        """Let a host's jobs work until now, and remove those that have ended."""
        host.advance(now)
        ended = host.finished_jobs()
        if not ended:
            return
        for job in ended:
            job.result.finish = now
            host.remove(job)
        host.looks.note_change(now)
        waiting, self._waiting = self._waiting, []
        for queued in waiting:
            self._agenda.add(now, Arrival(queued))

    def _arrive(self, job: Job, now: float) -> None:
        host = host_for(job, self._hosts)
        if host is None:
            self._waiting.append(job)
            return
        result = self._results[job.name]
        result.start, result.waited = now, now - job.arrival
        self._start(SimulatedJob(job, result, self._readers), host, now)

    def _start(self, job: SimulatedJob, host: SimulatedHost, now: float) -> None:
        """Start a job on the host where it arrives, or to which it has migrated."""
        job.result.node = host.spec.name
        job.start(new_history(job, host.spec, now, clairvoyant=self._clairvoyant))
        self._bring_up_to(host, now)
        host.add(job)
        host.looks.note_change(now)
        self._update(host)

    # Rounds

    def _update(self, host: SimulatedHost) -> None:
        """Let the policy look if that is due, share the CPUs anew, and schedule the next event."""
        if host.now >= host.looks.due:
            self._look(host)
        have_changed = give_portions(host.jobs.values(), host.spec.cpus)
        if have_changed and len(host.jobs) > 1 and self._requirements.shares:
            host.looks.note_new_portions(host.now)
        self._plan_next_event(host)

    def _look(self, host: SimulatedHost) -> None:
        """Sample a host, and run a round if one is due."""
        is_again = host.looks.begin(host.now)
        if not self._decides:
            host.forget_reports()
            return
        if is_again:
            host.history.containers_changed()
        target_met = host.sample(self._requirements)
        realisation = self._rounds.run(
            host.history, lambda: self._histories(host), target_met=target_met
        )
        if realisation is None:
            return
        host.apply_settings(realisation)
        for action in host.history.decision.actions:
            job = host.jobs.get(action.job_id)
            if action.kind is ActionKind.MIGRATE and job is not None:
                self._migrate(host, job, self._hosts[action.to])

    def _histories(self, host: SimulatedHost) -> dict[str, HostHistory]:
        """Return the histories of all hosts, updated to the time of this one."""
        for other in self._hosts.values():
            if other is not host:
                other.advance(host.now)
                other.sample(self._requirements)
        return {name: other.history for name, other in self._hosts.items()}

    def _migrate(self, host: SimulatedHost, job: SimulatedJob, target: SimulatedHost) -> None:
        """Let a job leave for another host, if that has room. The room is reserved until the job
        lands."""
        if not target.room.suffices_for(job.job):
            return
        host.remove(job)
        target.room.reserve(job.job)
        job.result.migrations += 1
        job.portion = Portion()
        self._agenda.add(host.now + job.job.checkpoint, Landing(job, target))

    def _plan_next_event(self, host: SimulatedHost) -> None:
        host.version += 1
        host.looks.plan(host.now, host.history, host.next_news())
        time = min(host.looks.due, max(host.now + LEAST_STEP, host.next_change()))
        if time < math.inf:
            self._agenda.add(time, Wake(host, host.version))
