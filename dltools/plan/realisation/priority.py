"""Priorities: weights so far apart that the first jobs run almost alone."""

from __future__ import annotations

from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.realisation.base import MILD_NOTE, TURN_NOTE, Case, Realisation
from dltools.plan.realisation.order import Standing, groups_that_fit, in_order, standings, unknown
from dltools.plan.realisation.queue import Bound
from dltools.plan.realisation.settings import Settings

LEVELS = (1024.0, 10.0, 2.0)
"""Weights of `priority`: of the first, the next and all others in the queue. The first is the
default of every container, so that a new job can report its first progress, and no job goes before
containers and services that are not ours; where these compete, see `_levels`. The kernel's files
hold them as 1024, 10 and 2 in version 1 of cgroups, and as 100, 1 and 1 in version 2, which has no
smaller weight."""

_OTHERS = 0.05
"""Share of the CPUs from which on programs that are no jobs compete for them (ours)."""

_MOST = 64.0
"""The most by which the first are raised (ours)."""

MILD_LEVELS = (1024.0, 512.0, 256.0)
"""The same where what is set may stay for good: beside one job of the first, one of the last still
gets a fifth of the CPU time (ours)."""


def priorities(case: Case) -> Realisation:
    """Return weights far apart.

    First come the jobs that get all that their threads can use, then the others in order of their
    shares, so that as many as there are CPUs for run almost alone. Jobs of a higher rank stand
    behind. Work-conserving.
    """
    if case.choice.is_even:
        even: dict[str, Settings] = {job.id: {"cpu_weight": LEVELS[0]} for job in case.jobs}
        return case.realisation("no job waits", settings=even)
    found = standings(case)
    jobs = in_order(case, found)
    bound = Bound(
        len(groups_that_fit(jobs, case.cpus)), case.choice.queue.max_slowdown, unknown(case, jobs)
    )
    urgent = case.queue.urgent((job.run_id for job in jobs), bound, case.now)
    groups = groups_that_fit(_in_turn(case, jobs, found, urgent), case.cpus)
    levels = MILD_LEVELS if case.choice.is_mild else _levels(case, groups)
    settings: dict[str, Settings] = {job.id: {"cpu_weight": levels[0]} for job in case.jobs}
    notes: dict[str, str] = {}
    for number, group in enumerate(groups):
        for job in group:
            settings[job.id] = {"cpu_weight": levels[min(number, len(levels) - 1)]}
            notes[job.id] = (
                f"{number + 1}. of {len(groups)} in the queue" if len(groups) > 1 else ""
            )
    first, waiting = groups[0] if groups else [], [job for group in groups[1:] for job in group]
    notes |= {job.id: TURN_NOTE for job in first if job.run_id in urgent}
    note = f"work-conserving; the first of {len(groups)} groups in the queue runs almost alone"
    if case.choice.is_mild:
        note = f"work-conserving; {len(groups)} groups in the queue; {MILD_NOTE}"
    elif waiting:
        note += f", equals in turn; no job waits much longer than {bound.patience_s:.3g} s"
    contested = {found[job.id] for job in waiting}
    queue = case.queue.moved(
        first=[job.run_id for job in first],
        waiting=[job.run_id for job in waiting],
        urgent=[job.run_id for job in first if job.run_id in urgent],
        equals=[job.run_id for job in first if found[job.id] in contested],
        bound=bound,
        now=case.now,
    )
    return case.realisation(note, settings=settings, notes=notes, queue=queue)


def _levels(case: Case, groups: list[list[ContainerHistory]]) -> tuple[float, ...]:
    """Return the weights of the first, the next and all others in the queue.

    Where others compete for the CPUs, the first have the weights of those who wait too: what the
    jobs have together is theirs, and is no gift to others.
    """
    if not groups or case.others is None or case.others < _OTHERS:
        return LEVELS
    raised = min(_MOST, sum(map(len, groups)) / len(groups[0]))
    return float(round(LEVELS[0] * raised)), *LEVELS[1:]


def _in_turn(
    case: Case, jobs: list[ContainerHistory], found: dict[str, Standing], urgent: list[str]
) -> list[ContainerHistory]:
    """Return the jobs in order: urgent ones first, then by standing; equals take turns."""
    place = {run_id: number for number, run_id in enumerate(urgent)}
    return sorted(
        jobs,
        key=lambda job: (
            place.get(job.run_id, len(place)),
            found[job.id],
            case.queue.turn(job.run_id, case.now),
            0.0 if job.run_id in case.queue.positions else job.attained,
        ),
    )
