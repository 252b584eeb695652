"""Advice to the owners of jobs that run more threads than they have CPUs: what to start them with.

Counters say whether a job does: how many threads want a CPU, by the scheduler; how many CPUs it may
use, by its quota, its list of CPUs and its host; for how long its quota stopped it. What is in its
processes says which variable or option sets the number, whatever the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dltools.labels import Role
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.outcome.decisions import JobDecision
from dltools.plan.signals.busy_threads import (
    busy_threads,
    certain_threads,
    settings_against_spinning,
    spinning_threads,
)
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import Runtime

_WORTH = (
    "measured on 2 CPUs, two trainings of two threads: 31 to 37 s as they are, 17 s with "
    "OMP_WAIT_POLICY=passive"
)

_STOPPED = 0.25
"""Part of the time for which a quota stops a job that is worth a line, where nobody knows how many
of its threads want a CPU (ours)."""

_SHOWN = 0.01
"""The least part of the time that is worth to be told."""

_OPTIONS = {
    "llama.cpp": "--threads {n}",
    "libopenblas": "-e OPENBLAS_NUM_THREADS={n}",
    "libmkl": "-e MKL_NUM_THREADS={n}",
    "polars": "-e POLARS_MAX_THREADS={n}",
    "rayon": "-e RAYON_NUM_THREADS={n}",
    "inductor": "-e TORCHINDUCTOR_COMPILE_THREADS={n}",
}
"""By what is in a container, what sets the number of its threads. TBB has no variable, and takes as
many as its list of CPUs has."""


def advice(hosts: Sequence[HostHistory], decisions: Sequence[JobDecision]) -> list[str]:
    """Return a line for each job that would run better if it was started differently, and a line
    that says what this was worth where it was measured."""
    lines = []
    for host in hosts:
        name = f"{host.name}: " if len(hosts) > 1 else ""
        quotas = {
            decision.container_id: _quota(decision)
            for decision in decisions
            if decision.host == host.name
        }
        lines += [f"{name}{line}" for line in _of_host(host, quotas)]
    return lines


def _quota(decision: JobDecision) -> float | None:
    """Return the quota that will be in force, None for none."""
    return (decision.present | (decision.setting or {})).get("cpus")


def _of_host(host: HostHistory, quotas: dict[str, float | None]) -> Iterator[str]:
    jobs = _jobs(host)
    spinning = [job for job in jobs if spinning_threads(job)]
    reporting = [job for job in jobs if job.progress.metrics or job in spinning]
    total = sum(spinning_threads(job) or busy_threads(job) for job in reporting)
    is_crowded = len(reporting) > 1 and total > host.cpus > 0
    for job in jobs if host.cpus > 0 else ():
        quota = quotas.get(job.id)
        if (fault := _beyond(job, host.cpus, quota)) is not None or (
            fault := _on_all_cpus(job, host)
        ) is not None:
            yield f"warning: {fault}"
        elif is_crowded and job in spinning:
            yield f"advice: {_spins(job)}: {_start(job, int(host.cpus / len(reporting)))}"
    if spinning and is_crowded:
        yield f"{total} threads of {len(reporting)} jobs on {host.cpus:g} CPUs; {_WORTH}"


def _jobs(host: HostHistory) -> list[ContainerHistory]:
    """Return the containers that train, or in which something starts threads, by name."""
    containers = (
        job
        for job in host.containers.values()
        if job.progress.metrics
        or job.standing.role is Role.TRAINING
        or job.runtime.thread_pools
        or job.runtime.openmp_runtime
    )
    return sorted(containers, key=lambda job: (job.name, job.id))


def _beyond(job: ContainerHistory, cpus: float, quota: float | None) -> str | None:
    """Return how a job's threads are too many for its CPUs, and what to do; None where they are
    not, or nobody knows. `quota` will be in force; other limits count if they are its owner's."""
    spinning, own = spinning_threads(job), job.owner.cpus
    if spinning and quota is not None and quota < min(spinning, cpus):
        uses = f"which uses up its quota of {quota:g} CPUs{_stopped(job)}"
        return f"{_spins(job)}, {uses}: {_start(job, int(quota))}"
    most = min(job.owner.most_cpus, cpus)
    threads = certain_threads(job)
    if threads is not None and threads > max(1, most):
        limit = f"the host has {cpus:g}"
        if most < cpus:
            limit = f"its quota is {own:g}{_stopped(job)}" if most == own else f"it has {most:g}"
        return f"{job.name}: {threads} threads want a CPU at once, and {limit}: {_fewer(job, most)}"
    is_stopped = own is not None and (job.use.throttled.part or 0.0) >= _STOPPED
    if is_stopped and threads is None and (job.use.threads or 1) > 1:
        return f"{job.name}: its quota is {own:g} CPUs{_stopped(job)}: {_fewer(job, most)}"
    return None


def _on_all_cpus(job: ContainerHistory, host: HostHistory) -> str | None:
    """Return what takes CPUs from those that feed the GPUs: processes that compile, of which there
    are more than CPUs; or a thread of each rank of a training on each CPU, where several trainings,
    or ranks of one, have GPUs. None for nothing."""
    pools, most = _pools(job.runtime), min(job.owner.most_cpus, host.cpus)
    if pools.get("inductor", 0) > max(1, most):
        setting = options(Runtime(thread_pools="inductor"), most)
        what = f"{pools['inductor']} processes compile at once on {most:g} CPUs"
        return f"{job.name}: {what}: start it with {setting} next time"
    on_gpus = [
        container
        for container in host.containers.values()
        if container.use.gpus and container.standing.role is Role.TRAINING
    ]
    ranks = sum(len(container.use.gpus) for container in on_gpus)
    is_told = "OMP_NUM_THREADS=" in (job.runtime.openmp_settings or "")
    if job not in on_gpus or ranks < 2 or is_told or not job.runtime.openmp_runtime or most < 2:
        return None
    if (job.use.threads or 0) < most * len(job.use.gpus):
        return None
    what = f"{job.use.threads} threads for {len(job.use.gpus)} of {ranks} GPUs in use"
    fewer = max(1, int(host.cpus / ranks))
    start = f"start it with -e OMP_NUM_THREADS={fewer} next time"
    return f"{job.name}: {what}, on all {most:g} CPUs: {start}"


def _pools(runtime: Runtime) -> dict[str, int]:
    """Return what starts threads in a job beside OpenMP, and how many, 0 where nothing says it."""
    pairs = (pool.partition("=") for pool in (runtime.thread_pools or "").split("+"))
    return {name: int(count) if count.isdecimal() else 0 for name, _, count in pairs}


def _stopped(job: ContainerHistory) -> str:
    """Return for how much of the time its quota stopped a job, "" if it did not."""
    part = job.use.throttled.part or 0.0
    return f", which stopped it {part:.0%} of the time" if part >= _SHOWN else ""


def _spins(job: ContainerHistory) -> str:
    threads, runtime = spinning_threads(job), job.runtime.openmp_runtime
    return f"{job.name}: up to {threads} threads of {runtime} spin while they wait"


def _start(job: ContainerHistory, cpus: int) -> str:
    """Return what to start a job with whose threads spin: what stops that, or as many as `cpus`."""
    calm = " ".join(f"-e {variable}" for variable in settings_against_spinning(job))
    if max(1, cpus) >= spinning_threads(job):
        return f"start it with {calm} next time"
    return f"start it with {calm} next time, or with fewer threads: {options(job.runtime, cpus)}"


def _fewer(job: ContainerHistory, cpus: float) -> str:
    if setting := options(job.runtime, cpus):
        return f"start it with {setting} next time"
    return f"set the number of its threads to {max(1, int(cpus))}"


def options(runtime: Runtime, cpus: float) -> str:
    """Return the options of `docker run`, or of the program, that set a job's number of threads, ""
    where nothing in it is known."""
    pools = _pools(runtime)
    settings = [text for name, text in _OPTIONS.items() if name in pools]
    if runtime.openmp_runtime and "llama.cpp" not in pools:
        settings.insert(0, "-e OMP_NUM_THREADS={n}")
    if not settings and "libtbb" in pools:
        settings = ["--cpuset-cpus of {n} CPUs"]
    return " ".join(settings).format(n=max(1, int(cpus)))
