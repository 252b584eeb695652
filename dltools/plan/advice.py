"""Advice to the owners of jobs whose threads spin: what to start them with next time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dltools.plan.decisions import JobDecision
from dltools.plan.host_history import HostHistory
from dltools.plan.signals.busy_threads import (
    busy_threads,
    settings_against_spinning,
    spinning_threads,
)
from dltools.plan.signals.container_history import ContainerHistory

_WORTH = (
    "measured on 2 CPUs, two trainings of two threads: 31 to 37 s as they are, 17 s with "
    "OMP_WAIT_POLICY=passive"
)


def advice(hosts: Sequence[HostHistory], decisions: Iterable[JobDecision]) -> list[str]:
    """Return a line for each job that would run better if it was started differently, and a line
    that says what this was worth where it was measured."""
    decided = list(decisions)
    lines = []
    for host in hosts:
        name = f"{host.name}: " if len(hosts) > 1 else ""
        quotas = {one.container_id: _quota(one) for one in decided if one.host == host.name}
        lines += [f"{name}{line}" for line in _of_host(host, quotas)]
    return lines


def _quota(decision: JobDecision) -> float | None:
    """Return the quota that will be in force, None for none."""
    return (decision.present | (decision.setting or {})).get("cpus")


def _of_host(host: HostHistory, quotas: dict[str, float | None]) -> Iterator[str]:
    jobs = _jobs(host)
    spinning = [job for job in jobs if spinning_threads(job)]
    total = sum(spinning_threads(job) or busy_threads(job) for job in jobs)
    is_crowded = len(jobs) > 1 and total > host.cpus > 0
    for job in spinning:
        quota = quotas.get(job.id)
        if quota is not None and quota < min(spinning_threads(job), host.cpus):
            yield (
                f"warning: {_spins(job)}, which uses up its quota of {quota:g} CPUs: "
                f"{_start(job, int(quota))}"
            )
        elif is_crowded:
            yield f"advice: {_spins(job)}: {_start(job, int(host.cpus / len(jobs)))}"
    if spinning and is_crowded:
        yield f"{total} threads of {len(jobs)} jobs on {host.cpus:g} CPUs; {_WORTH}"


def _jobs(host: HostHistory) -> list[ContainerHistory]:
    """Return the containers that train or serve, or whose threads spin, by name."""
    found = (job for job in host.containers.values() if job.metrics or spinning_threads(job))
    return sorted(found, key=lambda job: (job.name, job.id))


def _spins(job: ContainerHistory) -> str:
    threads = spinning_threads(job)
    return f"{job.name}: up to {threads} threads of {job.openmp_runtime} spin while they wait"


def _start(job: ContainerHistory, cpus: int) -> str:
    """Return what to start a job with: what stops its spinning, or as many threads as `cpus`."""
    calm = " ".join(f"-e {variable}" for variable in settings_against_spinning(job))
    fewer = max(1, cpus)
    if fewer >= spinning_threads(job):
        return f"start it with {calm} next time"
    return f"start it with {calm} next time, or with fewer threads: -e OMP_NUM_THREADS={fewer}"
