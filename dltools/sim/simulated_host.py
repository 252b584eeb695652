"""A host in virtual time: its jobs, their CPU shares, and their history for the policy; and the
host of a job that arrives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dltools.notation.resources import format_cpus
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.interface import Requirements
from dltools.plan.realisation.settings import Settings
from dltools.plan.realisation.shared_host import Realisation
from dltools.sim.sharing import (
    PAUSED,
    allocate,
    change_over_loss,
    cores_without_quota,
    kept_on_gpu,
    parts_of_gpu_turns,
    speed,
    turns,
)
from dltools.sim.simulated_job import Report, SimulatedJob
from dltools.sim.workload import HostSpec, Job

_LOOKS_AT_OTHERS = 4
"""Iterations by which the CPU shares of jobs that sleep converge; more change little."""


class SimulatedHost:
    """One host. Times are in seconds.

    `jobs`: by id. `history`: the history that the policy sees. `now`: the time up to which the jobs
    have worked. `memory`: bytes in use. `held_gpus`: the numbers of the GPUs that each job holds,
    by name of the job. `cpu_seconds`: CPU time used so far. `version` counts changes: an event of
    an older version is out of date. `look_at`: when a round may be due. `changed_at`: when settings
    follow the first start or exit since the last look. `looks`: further times to look, because the
    shares or demands of jobs have changed. `reports`: the reports for an observer, None without
    one.
    """

    def __init__(self, spec: HostSpec, *, is_observed: bool = False) -> None:
        self.spec = spec
        self.history = HostHistory(spec.name, spec.cpus)
        self.history.cpuset = format_cpus(range(max(1, math.ceil(spec.cpus))))
        self.history.looks_after_changes = True
        self.jobs: dict[str, SimulatedJob] = {}
        self.now = 0.0
        self.memory = 0
        self.held_gpus: dict[str, tuple[int, ...]] = {}
        self.cpu_seconds = 0.0
        self.version = 0
        self.look_at = self.changed_at = math.inf
        self.looks: list[float] = []
        self.reports: list[Report] | None = [] if is_observed else None

    # Jobs

    def has_room_for(self, job: Job) -> bool:
        """Tell whether its free memory and GPUs suffice for a job."""
        if self.spec.memory and self.memory + job.memory > self.spec.memory:
            return False
        if not job.gpus and not job.gpu_list:
            return True
        free = self._free_gpus()
        listed = set(job.listed_gpus)
        return self.spec.holds(job) and job.gpus <= len(set(free) - listed)

    def _free_gpus(self) -> list[int]:
        held = {number for numbers in self.held_gpus.values() for number in numbers}
        return [number for number in range(self.spec.gpus) if number not in held]

    def reserve(self, job: Job) -> None:
        """Reserve the memory and GPUs of a job."""
        self.memory += job.memory
        if job.gpus or job.gpu_list:
            listed = job.listed_gpus
            free = [number for number in self._free_gpus() if number not in listed]
            self.held_gpus[job.name] = tuple(sorted((*listed, *free[: job.gpus])))

    def release(self, job: Job) -> None:
        """Free the memory and GPUs of a job."""
        self.memory -= job.memory
        self.held_gpus.pop(job.name, None)

    def add(self, job: SimulatedJob) -> None:
        """Start a job."""
        self.jobs[job.history.id] = job
        self.history.containers[job.history.id] = job.history
        self.history.containers_changed()
        self.reserve(job.job)
        job.gpus = self.held_gpus.get(job.job.name, ())
        job.observed = self.reports

    def remove(self, job: SimulatedJob) -> None:
        """Remove a job."""
        del self.jobs[job.history.id]
        del self.history.containers[job.history.id]
        self.history.containers_changed()
        self.release(job.job)

    def finished_jobs(self) -> list[SimulatedJob]:
        """Return the jobs that have done their work, or served their time."""
        return [job for job in self.jobs.values() if job.is_finished(self.now)]

    # Time

    def advance(self, now: float, *, reports_all: bool) -> None:
        """Let the jobs work until a time (s). `reports_all`: whether every report is kept."""
        span = now - self.now
        if span > 0:
            for job in self.jobs.values():
                self.cpu_seconds += job.advance(self.now, span, reports_all=reports_all)
        self.now = max(now, self.now)

    def next_change(self) -> float:
        """Return when a job next finishes its start-up or its work, or ends; infinity for never."""
        return min([job.next_change(self.now) for job in self.jobs.values()], default=math.inf)

    def next_news(self) -> float:
        """Return when a job has made, or will make, a report that a round is due for."""
        return min([job.next_news(self.now) for job in self.jobs.values()], default=math.inf)

    # The policy

    def sample(self, micros: int, requirements: Requirements) -> bool:
        """Bring the policy's history up to a time (microseconds); tell whether a target was met."""
        history, sees, cpus = self.history, not self.spec.remote, self.spec.cpus
        history.actions = ()
        if sees and (history.sampled_at is None or micros > history.sampled_at):
            history.busy = history.busy.after([micros], [self.cpu_seconds], [cpus], cpus)
        history.sampled_at = micros
        met = [job.sample(micros, requirements, sees_threads=sees) for job in self.jobs.values()]
        return any(met)

    def forget_reports(self) -> None:
        """Forget the reports that no policy reads."""
        for job in self.jobs.values():
            job.news = math.inf
            job.unread.clear()

    def apply_settings(self, realisation: Realisation) -> None:
        """Set the limits that a round has decided on."""
        for key, job in self.jobs.items():
            setting = realisation.settings.get(key, {})
            job.set_limits(setting, takes_turns=realisation.takes_turns)

    def share_cpus(self) -> bool:
        """Share the CPUs among the jobs; tell whether the share or demand of a job has changed.

        A job that sleeps or waits for its GPU leaves its CPUs to the others meanwhile.
        """
        jobs = list(self.jobs.values())
        before = [_portion(job) for job in jobs]
        for job in jobs:
            job.wanted = job.wanted_cores(self.spec.cpus)
            job.cores = job.rate = job.awake = 0.0
        wanted, limits = [job.wanted for job in jobs], [job.limits for job in jobs]
        on_gpus = [self._gpu_speed_kept(job) for job in jobs]
        asleep = [_asleep(job, one) for job, one in zip(jobs, on_gpus, strict=True)]
        parts = parts_of_gpu_turns(limits)
        for turn in turns(limits):
            cores, awake = self._cores(jobs, wanted, turn.limits, asleep, parts)
            for at, job in enumerate(jobs):
                duty = turn.share * awake[at] * parts[at]
                job.cores += cores[at] * duty
                if turn.limits[at].get("state") != PAUSED:
                    job.awake = max(job.awake, awake[at])
                if job.is_working:
                    job.rate += self._rate(job.job, at, cores[at], wanted, turn.limits) * duty
        for job, one in zip(jobs, on_gpus, strict=True):
            job.gpu_use = min(1.0, job.rate * job.job.device / one)
        return before != [_portion(job) for job in jobs]

    def _cores(
        self,
        jobs: list[SimulatedJob],
        wanted: list[float],
        limits: list[Settings],
        asleep: list[float],
        parts: list[float],
    ) -> tuple[list[float], list[float]]:
        """Return the cores of each job while it is awake, and the part of the time for which it is.

        While a job that sometimes sleeps is awake, it competes with all others that are awake.
        `asleep`: seconds of sleep for each useful CPU second; `parts`: the part of the time that
        each job has by its turns on GPUs.
        """
        cpus = self.spec.cpus
        cores, awake = allocate(wanted, limits, cpus), [1.0] * len(jobs)
        sleepy = [at for at in range(len(jobs)) if asleep[at] > 0 or parts[at] < 1]
        used = list(wanted)
        is_contested = sum(wanted) > cpus
        for number in range(1 + _LOOKS_AT_OTHERS if is_contested else 1):
            for at in sleepy:
                if number > 0:  # the first iteration takes each as if it were alone
                    others = [*used[:at], wanted[at], *used[at + 1 :]]
                    cores[at] = allocate(others, limits, cpus)[at]
                else:
                    cores[at] = allocate([wanted[at]], [limits[at]], cpus)[0]
                rate = self._rate(jobs[at].job, at, cores[at], wanted, limits)
                awake[at] = 1 / (1 + asleep[at] * rate)
            for at in sleepy:
                used[at] = cores[at] * awake[at] * parts[at]
        if sleepy:
            given = allocate(used, limits, cpus)
            cores = [cores[at] if at in sleepy else given[at] for at in range(len(jobs))]
        return cores, awake

    def _gpu_speed_kept(self, job: SimulatedJob) -> float:
        """Return the part of its speed that a job keeps on its GPUs beside the other jobs that use
        them at the same time."""
        if not job.is_working or not job.gpus or job.job.device <= 0:
            return 1.0
        beside = [
            one
            for one in self.jobs.values()
            if one is not job
            and one.is_working
            and one.job.device > 0
            and set(one.gpus) & set(job.gpus)
        ]
        return kept_on_gpu(
            job.job.name,
            [one.job.name for one in beside if not _take_turns(one.limits, job.limits)],
        )

    def _rate(
        self, job: Job, at: int, cores: float, wanted: list[float], limits: list[Settings]
    ) -> float:
        """Return the useful CPU seconds per second of a job with these cores."""
        cpus, unlimited = self.spec.cpus, None
        if job.all_threads > 1 and job.spin > 0 and limits[at].get("cpus") is not None:
            unlimited = cores_without_quota(at, wanted, limits, cpus)
        found = speed(cores, job.all_threads, cpus, job.spin, unlimited)
        return found * (1 - change_over_loss(limits[at]))


def _asleep(job: SimulatedJob, kept_on_gpus: float) -> float:
    """Return for how many seconds a job sleeps, or waits for its GPU, per useful CPU second."""
    return job.job.wait + job.job.device / kept_on_gpus if job.is_working else 0.0


def _portion(job: SimulatedJob) -> tuple[float, ...]:
    """Return the demand, cores and speed of a job."""
    return job.wanted, job.cores, job.rate, job.awake, job.gpu_use


def _take_turns(one: Settings, other: Settings) -> bool:
    """Tell whether two jobs take turns on a GPU, so that they never run at the same time."""
    is_one_queue = "queue" in one and one["queue"] == other.get("queue")
    return is_one_queue and one["group"] != other["group"]


def host_for(job: Job, hosts: Mapping[str, SimulatedHost]) -> SimulatedHost | None:
    """Return the host for a job that arrives: the one that it names, else the one with the fewest
    jobs that has room, the first among equals; None if there is no room."""
    able = [hosts[job.node]] if job.node else hosts.values()
    room = (host for host in able if host.has_room_for(job))
    return min(room, key=lambda host: len(host.jobs), default=None)
