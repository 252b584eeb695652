"""A host in virtual time: its jobs, the room that they hold, and their history for the policy; and
the host of a job that arrives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain

from dltools.notation.resources import format_cpus
from dltools.notation.times import MICRO
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.interface import Requirements
from dltools.plan.realisation.shared_host import Realisation
from dltools.sim import devices, histories
from dltools.sim.reaction import AT_ONCE, Looks, Reaction
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.training_and_serving import Report
from dltools.sim.workload import HostSpec, Job


class Room:
    """The memory and devices of a host that are held for jobs.

    `memory`: bytes. `devices`: the numbers of those that each job holds, by name of the job.
    """

    def __init__(self, spec: HostSpec) -> None:
        self.memory = 0
        self.devices: dict[str, tuple[int, ...]] = {}
        self._spec = spec

    def suffices_for(self, job: Job) -> bool:
        """Tell whether the free memory and devices suffice for a job."""
        if self._spec.memory and self.memory + job.memory > self._spec.memory:
            return False
        return self._spec.holds(job) and len(self._devices_for(job)) == job.device_count

    def _devices_for(self, job: Job) -> tuple[int, ...]:
        return self._spec.devices_for(job, {*chain.from_iterable(self.devices.values())})

    def reserve(self, job: Job) -> None:
        """Reserve the memory and devices of a job."""
        self.memory += job.memory
        self.devices[job.name] = self._devices_for(job)

    def release(self, job: Job) -> None:
        """Free the memory and devices of a job."""
        self.memory -= job.memory
        self.devices.pop(job.name, None)


class SimulatedHost:
    """One host. Times are in seconds.

    `jobs`: by id. `history`: the history that the policy sees. `now`: the time up to which the jobs
    have worked. `cpu_seconds`: CPU time used so far. `version` counts changes: an event of an older
    version is out of date. `looks`: when the policy looks. `reports`: the reports for an observer,
    None without one.
    """

    def __init__(
        self, spec: HostSpec, *, is_observed: bool = False, reaction: Reaction = AT_ONCE
    ) -> None:
        self.spec = spec
        self.history = HostHistory(spec.name, spec.cpus)
        self.history.cpuset = format_cpus(range(max(1, math.ceil(spec.cpus))))
        self.history.looks_after_changes = True
        self.jobs: dict[str, SimulatedJob] = {}
        self.room = Room(spec)
        self.now = 0.0
        self.cpu_seconds = 0.0
        self.version = 0
        self.looks = Looks(reaction)
        self.reports: list[tuple[SimulatedJob, Report]] | None = [] if is_observed else None

    # Jobs

    def add(self, job: SimulatedJob) -> None:
        """Start a job."""
        self.jobs[job.history.id] = job
        self.history.containers[job.history.id] = job.history
        self.history.containers_changed()
        self.room.reserve(job.job)
        job.devices = self.room.devices[job.job.name]
        job.observed = self.reports

    def remove(self, job: SimulatedJob) -> None:
        """Remove a job."""
        del self.jobs[job.history.id]
        del self.history.containers[job.history.id]
        self.history.containers_changed()
        self.room.release(job.job)

    def finished_jobs(self) -> list[SimulatedJob]:
        """Return the jobs that have done their work, or served their time."""
        return [job for job in self.jobs.values() if job.is_finished(self.now)]

    # Time

    def advance(self, now: float) -> None:
        """Let the jobs work until a time (s)."""
        span = now - self.now
        if span > 0:
            for job in self.jobs.values():
                devices.note_use(job, span)
                self.cpu_seconds += job.advance(self.now, span)
        self.now = max(now, self.now)

    def next_change(self) -> float:
        """Return when a job next finishes its start-up or its work, or ends; infinity for never."""
        return min([job.next_change(self.now) for job in self.jobs.values()], default=math.inf)

    def next_news(self) -> float:
        """Return when a job has made, or will make, a report that a round is due for."""
        return min([job.next_news(self.now) for job in self.jobs.values()], default=math.inf)

    # The policy

    def sample(self, requirements: Requirements) -> bool:
        """Bring the policy's history up to date; tell whether a target was met."""
        micros = round(self.now * MICRO)
        history, sees, cpus = self.history, not self.spec.remote, self.spec.cpus
        history.decision.actions = ()
        if sees and (history.sampled_at is None or micros > history.sampled_at):
            load = history.load
            load.busy = load.busy.after([micros], [self.cpu_seconds], [cpus], cpus)
        history.sampled_at = micros
        met = [
            histories.sample(job, micros, requirements, sees_threads=sees)
            for job in self.jobs.values()
        ]
        return any(met)

    def forget_reports(self) -> None:
        """Forget the reports that no policy reads."""
        for job in self.jobs.values():
            job.forget_reports()

    def apply_settings(self, realisation: Realisation) -> None:
        """Set the limits that a round has decided on."""
        for key, job in self.jobs.items():
            job.set_limits(realisation.settings.get(key, {}))


def host_for(job: Job, hosts: Mapping[str, SimulatedHost]) -> SimulatedHost | None:
    """Return the host for a job that arrives: the one that it names, else the one with the fewest
    jobs that has room, the first among equals; None if there is no room."""
    able = [hosts[job.node]] if job.node else hosts.values()
    room = (host for host in able if host.room.suffices_for(job))
    return min(room, key=lambda host: len(host.jobs), default=None)
