"""How many threads a job keeps busy, how many CPUs it can use, and whether its threads spin.

The choice of a mode, the order of jobs and the advice to owners use these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from dltools.labels import Role
from dltools.plan.signals.job import Job

_NEAR = 0.25
"""A demand up to this much above a whole number counts as that number of threads (ours): a job of
one thread wants 1.05 CPUs, a job of two threads that wait for each other 1.8."""


_LEAST_NEED = 0.1
"""The least that a job is taken to need, in CPUs."""


_LEAST_QUOTA = 0.001
"""The least quota that an owner can ask for: 1 ms in a period of 1 s."""


def busy_threads(job: Job) -> int:
    """Return how many threads a job keeps busy: as many as were seen to want a CPU.

    If its demand is unknown: 1 if its pace shows that its other threads sleep, or if its number of
    threads is unknown too; else all its threads.
    """
    demand = job.use.cpu.demand
    if demand is not None:
        return max(1, math.ceil(demand - _NEAR))
    pace = job.progress.pace
    if pace is not None and pace.has_one_busy_thread and not job.use.resource.is_device:
        return 1
    return max(1, job.use.threads or 1)


def certain_threads(job: Job) -> int | None:
    """Return how many threads of a job want a CPU at once for certain, None if nobody knows: a
    shell and what it starts want 1.3 CPUs, one after the other."""
    demand = job.use.cpu.demand
    return None if demand is None else max(1, math.floor(demand + _NEAR))


def may_keep_fewer_busy(job: Job) -> bool:
    """Tell whether `busy_threads` are all of a job's threads, as nobody knows how many sleep."""
    return job.use.cpu.demand is None and busy_threads(job) > 1


def needed_cpus(job: Job) -> float:
    """Return the number of CPUs that a job can use: the least of its busy threads, its owner's
    quota and its owner's CPU list."""
    demand = job.use.cpu.demand
    if demand is None or demand >= 1 - _NEAR:
        need = float(busy_threads(job))
    else:
        need = max(_LEAST_NEED, round(demand, 1))
    return float(max(_LEAST_QUOTA, min(need, job.owner.most_cpus)))


def cpus_together(jobs: Iterable[Job], cpus: float) -> float:
    """Return how many of a host's `cpus` jobs need together."""
    return sum(min(needed_cpus(job), cpus) for job in jobs)


def is_serving(job: Job) -> bool:
    """Tell whether a job answers requests, and so never waits."""
    return job.standing.role is Role.SERVER


_LIBOMP = ("KMP_BLOCKTIME", "0+(ms|us)?")
_SPIN_LIMITS = {
    "libgomp": ("GOMP_SPINCOUNT", "0*([0-9]{1,2}|100)"),
    "libiomp5": _LIBOMP,
    "libomp": _LIBOMP,
}
"""By runtime of OpenMP: the setting that overrides its policy, and at what values threads hardly
spin. libgomp spins 100 rounds where it knows of more threads than CPUs, else 300,000; libomp spins
for 200 ms."""


def spinning_threads(job: Job) -> int:
    """Return how many threads of a job may spin while they wait: OMP_NUM_THREADS or else all of
    them; 0 if none do."""
    if not settings_against_spinning(job):
        return 0
    threads = busy_threads(job)
    match = re.match(r"\d+", _settings(job).get("OMP_NUM_THREADS", ""))
    threads = min(threads, max(1, int(match[0]))) if match else threads
    return threads if threads > 1 else 0


def settings_against_spinning(job: Job) -> list[str]:
    """Return the environment settings (NAME=VALUE) that would keep a job's threads from spinning,
    one for each OpenMP runtime that spins."""
    settings = _settings(job)
    runtimes = (job.runtime.openmp_runtime or "").split("+")
    return sorted({_against_spinning(name, settings) for name in runtimes} - {""})


def _against_spinning(runtime: str, settings: dict[str, str]) -> str:
    if runtime not in _SPIN_LIMITS:
        return ""
    name, harmless = _SPIN_LIMITS[runtime]
    if name in settings:
        return "" if re.fullmatch(harmless, settings[name]) else f"{name}=0"
    is_passive = settings.get("OMP_WAIT_POLICY", "").lower() == "passive"
    return "" if is_passive else "OMP_WAIT_POLICY=passive"


def _settings(job: Job) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in (job.runtime.openmp_settings or "").split())
    return {name: value for name, _, value in pairs}
