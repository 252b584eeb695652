"""A host in virtual time: its jobs, how it shares its CPUs, and what the policy knows of them."""

from __future__ import annotations

import math

from dltools.notation.cpu_lists import format_cpus, parse_cpus
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.base import Requirements
from dltools.plan.realisation.base import Realisation
from dltools.plan.realisation.settings import Settings
from dltools.sim.contention import change_over_loss, speed
from dltools.sim.cpu_sharing import Limits, allocate, cores_without_quota, turns
from dltools.sim.simulated_job import Report, SimulatedJob
from dltools.sim.workload import HostSpec, Job


class SimulatedHost:
    """One host.

    `jobs`: by id. `history`: what the policy knows. `now`: the time (s) that it has been brought up
    to. `memory` (bytes) and `gpus` are in use. `cpu_seconds`: handed out so far. `version` counts
    its changes: an event of an older version is out of date. `look_at`: when a round may be due.
    `changed_at`: when settings follow the first start or exit since the last look. `reports`: where
    an observer finds what the jobs have reported, None where there is no observer.
    """

    def __init__(self, spec: HostSpec, *, is_observed: bool = False) -> None:
        """Nothing runs yet."""
        self.spec = spec
        self.history = HostHistory(spec.name, spec.cpus)
        self.history.cpuset = format_cpus(range(max(1, math.ceil(spec.cpus))))
        self.jobs: dict[str, SimulatedJob] = {}
        self.now = 0.0
        self.memory = 0
        self.gpus = 0
        self.cpu_seconds = 0.0
        self.version = 0
        self.look_at = self.changed_at = math.inf
        self.reports: list[Report] | None = [] if is_observed else None

    # Jobs that come and go

    def has_room_for(self, job: Job) -> bool:
        """Tell whether its free memory and GPUs hold a job."""
        return self.spec.holds(job, self.memory, self.gpus)

    def reserve(self, job: Job) -> None:
        """Set memory and GPUs aside for a job."""
        self.memory += job.memory
        self.gpus += job.gpus

    def release(self, job: Job) -> None:
        """Give back what was set aside for a job."""
        self.memory -= job.memory
        self.gpus -= job.gpus

    def add(self, job: SimulatedJob) -> None:
        """Start a job."""
        self.jobs[job.history.id] = job
        self.history.containers[job.history.id] = job.history
        self.history.containers_changed()
        self.reserve(job.job)
        job.observed = self.reports

    def remove(self, job: SimulatedJob) -> None:
        """Take a job away."""
        del self.jobs[job.history.id]
        del self.history.containers[job.history.id]
        self.history.containers_changed()
        self.release(job.job)

    def finished_jobs(self) -> list[SimulatedJob]:
        """Return the jobs that have done their work, or served their time."""
        return [job for job in self.jobs.values() if job.is_finished(self.now)]

    # Time

    def advance(self, now: float, *, reports_all: bool) -> None:
        """Let the jobs work until a time. `reports_all`: every report is read."""
        span = now - self.now
        if span > 0:
            for job in self.jobs.values():
                self.cpu_seconds += job.advance(self.now, span, reports_all=reports_all)
        self.now = max(now, self.now)

    def next_change(self) -> float:
        """Return when a job has started up, done its work or ended, infinity for never."""
        return min([job.next_change(self.now) for job in self.jobs.values()], default=math.inf)

    def next_news(self) -> float:
        """Return when a job has reported, or will report, what a round is due for."""
        return min([job.next_news(self.now) for job in self.jobs.values()], default=math.inf)

    # The policy

    def sample(self, micros: int, requirements: Requirements) -> bool:
        """Bring the policy's history up to a time (microseconds); tell whether a target was met."""
        self.history.sampled_at, self.history.actions = micros, ()
        met = [job.sample(micros, requirements) for job in self.jobs.values()]
        return any(met)

    def apply_settings(self, realisation: Realisation) -> None:
        """Set the limits that a round has decided on."""
        for key, job in self.jobs.items():
            setting = realisation.settings.get(key, {})
            _limit(job.limits, setting, takes_turns=realisation.takes_turns)

    def share_cpus(self) -> None:
        """Share the CPUs among the jobs anew."""
        jobs = list(self.jobs.values())
        for job in jobs:
            job.wanted = job.wanted_cores(self.spec.cpus)
            job.cores = job.rate = 0.0
        wanted = [job.wanted for job in jobs]
        for turn in turns([job.limits for job in jobs]):
            awake = allocate(wanted, turn.limits, self.spec.cpus)
            duties = [self._duty(job, at, awake[at], wanted, turn.limits)
                      for at, job in enumerate(jobs)]  # fmt: skip
            if min(duties, default=1.0) < 1:  # others get the CPUs of those that sleep
                sleepy = [at for at, duty in enumerate(duties) if duty < 1]
                used = list(wanted)
                for at in sleepy:
                    used[at] = awake[at] * duties[at]
                given = allocate(used, turn.limits, self.spec.cpus)
                awake = [awake[at] if at in sleepy else given[at] for at in range(len(jobs))]
            for at, (job, cores, duty) in enumerate(zip(jobs, awake, duties, strict=True)):
                job.cores += turn.share * cores * duty
                if job.is_working:
                    rate = self._rate(job.job, at, cores, wanted, turn.limits)
                    job.rate += turn.share * rate * duty

    def _duty(
        self, job: SimulatedJob, at: int, cores: float, wanted: list[float], limits: list[Limits]
    ) -> float:
        """Return the part of the time in which a job with these cores is awake."""
        if job.job.wait == 0 or not job.is_working:
            return 1.0
        return 1 / (1 + job.job.wait * self._rate(job.job, at, cores, wanted, limits))

    def _rate(
        self, job: Job, at: int, cores: float, wanted: list[float], limits: list[Limits]
    ) -> float:
        """Return the useful CPU seconds per second of a job with these cores."""
        cpus, unlimited = self.spec.cpus, None
        if job.threads > 1 and job.spin > 0 and limits[at].cpus is not None:
            unlimited = cores_without_quota(at, wanted, limits, cpus)
        found = speed(cores, job.threads, cpus, job.spin, unlimited)
        return found * (1 - change_over_loss(limits[at]))


def _limit(limits: Limits, setting: Settings, *, takes_turns: bool) -> None:
    limits.group = None
    if takes_turns and "turn_s" in setting:
        limits.group, limits.turn_s = setting["group"], setting["turn_s"]
    if "cpus" in setting:
        limits.cpus = setting["cpus"]
    if "cpu_weight" in setting:
        limits.weight = setting["cpu_weight"]
    if "cpuset" in setting:
        cpus = setting["cpuset"]
        limits.listed = None if cpus is None else len(parse_cpus(cpus))
