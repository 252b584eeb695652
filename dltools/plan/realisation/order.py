"""The order of jobs that cannot all run at once, and the groups that can."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.realisation.base import Case
from dltools.plan.realisation.mode import is_serving, needed_cpus

Standing = tuple[int, bool, float]
"""What jobs are ordered by: the smaller goes first."""

_UNKNOWN: Standing = (sys.maxsize, True, 0.0)
"""Behind all others: the turn of such a job comes by the time that it has waited."""

_KNOWN_BY_S = 40.0
"""CPU seconds by which a job that reports is understood (ours); before that it goes with the first,
as a new job may be a short one."""


def standing(case: Case, job: ContainerHistory) -> Standing:
    """Return a job's standing.

    First come jobs that explore, in the order in which they started. The others stand by rank;
    then jobs that get all that their threads can use, so that a narrow job is not behind a wide
    one; then by share.
    """
    if job.id in case.exploring:
        return -1, False, float(job.started or job.arrived)
    share = round(case.share(job), 9)
    is_full = share * case.cpus >= min(needed_cpus(job), case.cpus) * (1 - 1e-6)
    return case.allocations[job.id].rank, not is_full, 0.0 if is_full else -share


def standings(case: Case) -> dict[str, Standing]:
    """Return the standing of each job that does not serve; an unlimited job equals the first, or
    waits for its turn if nothing is known of it for long (see `unknown`)."""
    found = {job.id: standing(case, job) for job in case.jobs if not is_serving(job)}
    unlimited = {job.id for job in case.jobs if case.is_unlimited(job)} - case.exploring
    others = found.keys() - unlimited - case.exploring
    best = min((found[key] for key in others), default=None)
    head = (0, False, 0.0) if best is None or best[0] > 0 else best
    last = unknown(case, case.jobs)
    places = {job.id: _UNKNOWN if job.run_id in last else head for job in case.jobs}
    return {key: places[key] if key in unlimited else one for key, one in found.items()}


def unknown(case: Case, jobs: Iterable[ContainerHistory]) -> frozenset[str]:
    """Return the runs of those jobs that nothing orders: each gets an equal part, in its turn.

    They are silent although they have explored, or have had `_KNOWN_BY_S`.
    """
    return frozenset(
        job.run_id
        for job in jobs
        if case.is_unlimited(job)
        and job.id not in case.exploring
        and (job.reports < 2 or job.attained >= _KNOWN_BY_S)
    )


def in_order(case: Case, found: Mapping[str, Standing]) -> list[ContainerHistory]:
    """Return the jobs that have a standing, in order; equals by arrival."""
    return sorted(
        (job for job in case.jobs if job.id in found),
        key=lambda job: (found[job.id], job.arrived, job.name, job.id),
    )


def groups_that_fit(
    jobs: Sequence[ContainerHistory], cpus: float, *, beside: float = 0.0
) -> list[list[ContainerHistory]]:
    """Return the jobs in groups that fit the CPUs.

    Each job joins the first group that has room for what it needs; one that fits nowhere is its own
    group. Jobs that need at most `beside` CPUs come last, and may join a group that is full, as far
    as they need no more than that together.
    """
    groups: list[list[ContainerHistory]] = []
    rooms: list[float] = []
    for job in sorted(jobs, key=lambda job: needed_cpus(job) <= beside):
        need = needed_cpus(job)
        spare = beside if need <= beside else 0.0
        at = next((k for k, room in enumerate(rooms) if need <= room + spare), None)
        if at is None:
            groups.append([])
            rooms.append(cpus)
            at = len(groups) - 1
        groups[at].append(job)
        rooms[at] -= min(need, cpus)
    return groups
