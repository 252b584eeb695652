"""What each job has of its host until the next event: its cores, speed and use of devices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dltools.actions.settings import Settings
from dltools.sim import cpu_sharing, devices
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.training_and_serving import Portion
from dltools.sim.workload import Job

_LOOKS_AT_OTHERS = 4
"""Iterations by which the CPU shares of jobs that sleep converge; more change little."""


def give_portions(jobs: Collection[SimulatedJob], cpus: float) -> bool:
    """Share the CPUs of a host among its jobs; tell whether the share or demand of a job has
    changed.

    A job that sleeps or waits for a device leaves its CPUs to the others meanwhile.
    """
    before = [job.portion for job in jobs]
    for job in jobs:
        job.portion = Portion(min(job.busy_threads, cpus), awake=0.0)
    limits = [job.limits for job in jobs]
    kept = [devices.speed_kept(job, jobs) for job in jobs]
    contest = _Contest(
        cpus,
        [job.job for job in jobs],
        [job.portion.wanted for job in jobs],
        [_asleep(job, part) for job, part in zip(jobs, kept, strict=True)],
    )
    for turn in cpu_sharing.turns(limits):
        cores, awake = contest.cores(turn.limits)
        for at, job in enumerate(jobs):
            portion, duty = job.portion, turn.share * awake[at]
            portion.cores += cores[at] * duty
            if turn.limits[at].get("state") != cpu_sharing.PAUSED:
                portion.awake = max(portion.awake, awake[at])
            if job.is_working:
                portion.rate += contest.rate(at, cores[at], turn.limits) * duty
    for job, part in zip(jobs, kept, strict=True):
        job.portion.device_use = min(1.0, job.portion.rate * job.job.device / part)
    return before != [job.portion for job in jobs]


@dataclass(frozen=True, slots=True)
class _Contest:
    """Jobs that compete for the CPUs of a host. `wanted`: the cores that each could use alone;
    `asleep`: its seconds of sleep for each useful CPU second."""

    cpus: float
    jobs: Sequence[Job]
    wanted: Sequence[float]
    asleep: Sequence[float]

    def cores(self, limits: Sequence[Settings]) -> tuple[list[float], list[float]]:
        """Return the cores of each job while it is awake, and the part of the time for which it is.

        While a job that sometimes sleeps is awake, it competes with all others that are awake.
        """
        cpus, wanted, asleep = self.cpus, self.wanted, self.asleep
        cores, awake = cpu_sharing.allocate(wanted, limits, cpus), [1.0] * len(wanted)
        sleepy = [at for at in range(len(wanted)) if asleep[at] > 0]
        used = list(wanted)
        is_contested = sum(wanted) > cpus
        for number in range(1 + _LOOKS_AT_OTHERS if is_contested else 1):
            for at in sleepy:
                if number > 0:  # the first iteration takes each as if it were alone
                    others = [*used[:at], wanted[at], *used[at + 1 :]]
                    cores[at] = cpu_sharing.allocate(others, limits, cpus)[at]
                else:
                    cores[at] = cpu_sharing.allocate([wanted[at]], [limits[at]], cpus)[0]
                awake[at] = 1 / (1 + asleep[at] * self.rate(at, cores[at], limits))
            for at in sleepy:
                used[at] = cores[at] * awake[at]
        if sleepy:
            given = cpu_sharing.allocate(used, limits, cpus)
            cores = [cores[at] if at in sleepy else given[at] for at in range(len(wanted))]
        return cores, awake

    def rate(self, at: int, cores: float, limits: Sequence[Settings]) -> float:
        """Return the useful CPU seconds per second of a job with these cores."""
        job, unlimited = self.jobs[at], None
        if job.all_threads > 1 and job.spin > 0 and limits[at].get("cpus") is not None:
            unlimited = cpu_sharing.cores_without_quota(at, self.wanted, limits, self.cpus)
        speed = cpu_sharing.speed(cores, job.all_threads, self.cpus, job.spin, unlimited)
        return speed * (1 - cpu_sharing.change_over_loss(limits[at]))


def _asleep(job: SimulatedJob, kept: float) -> float:
    """Return for how many seconds a job sleeps, or waits for its devices, per useful CPU second."""
    return job.job.wait + job.job.device / kept if job.is_working else 0.0
