"""Disjoint CPU sets: each job has CPUs of its own."""

from __future__ import annotations

from dltools.notation.cpu_lists import format_cpus, parse_cpus
from dltools.plan.realisation.base import Case, Realisation
from dltools.plan.realisation.mode import busy_threads
from dltools.plan.realisation.order import in_order, standing
from dltools.plan.realisation.settings import Settings


def cores(case: Case) -> Realisation:
    """Return disjoint sets out of the host's CPUs, in proportion to shares.

    No set is smaller than its job's threads; where that cannot be, every job has all CPUs.
    """
    jobs, every = case.jobs, parse_cpus(case.cpuset or "")
    everywhere: dict[str, Settings] = {job.id: {"cpuset": None} for job in jobs}
    if not every:
        return case.realisation("nothing is set: the CPUs' numbers are unknown")
    unknown = [job for job in jobs if job.threads is None]
    need = sum(busy_threads(job) for job in jobs)
    if unknown or need > len(every):
        what = (f"the threads of {unknown[0].name} are unknown" if unknown
                else f"{need} threads on {len(every)} CPUs")  # fmt: skip
        note = f"no job is pinned: {what}, and a job with fewer CPUs than threads slows down"
        return case.realisation(note, settings=everywhere)
    if len(jobs) == 1:
        return case.realisation("one job has all CPUs", settings=everywhere)
    order = in_order(case, {job.id: standing(case, job) for job in jobs})
    counts = {job.id: busy_threads(job) for job in order}
    for _spare in range(len(every) - need):
        poorest = max(order, key=lambda job: case.share(job) / counts[job.id])
        counts[poorest.id] += 1
    settings: dict[str, Settings] = {}
    at = 0
    for job in order:
        settings[job.id] = {"cpuset": format_cpus(every[at : at + counts[job.id]])}
        at += counts[job.id]
    return case.realisation("each job has CPUs of its own", settings=settings)
