"""Rotation: groups of jobs run in turn, the others are paused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.realisation.base import Case, Realisation
from dltools.plan.realisation.mode import is_serving, needed_cpus
from dltools.plan.realisation.order import groups_that_fit, in_order, standings
from dltools.plan.realisation.priority import priorities
from dltools.plan.realisation.settings import LEAST_WEIGHT, SHORTEST_TURN, Settings

_DOUBTFUL = "never paused before it reports, or its owner says what it is"

_SMALL = 0.25
"""A job that needs at most this part of the CPUs has its turn beside a full group: alone it would
leave most of them idle (ours)."""


_TURN_WEIGHT: Settings = {"cpu_weight": DEFAULT_CPU_WEIGHT}
"""What a job has in its turn: it may have waited by weights before."""


def rotation(case: Case) -> Realisation:
    """Return turns in proportion to shares, of groups whose threads fit the CPUs.

    As many trainings as there are CPUs for run at a time. Serving containers are never paused, nor
    are silent ones that may be no trainings: these queue by weights beside the turns of the others.
    New jobs come first, with a turn that is long enough for them to report.
    """
    trainings = in_order(case, standings(case))
    notes = {job.id: "serves: never paused" for job in case.jobs if is_serving(job)}
    spread = {job.id for job in case.jobs if case.has_members_elsewhere(job)}
    notes |= dict.fromkeys(spread, "has members elsewhere: never paused")
    trainings = [job for job in trainings if job.id not in spread]
    doubtful = [job for job in trainings if not job.may_be_paused]
    if case.choice.is_even:
        even = {job.id: _TURN_WEIGHT for job in case.jobs}
        return case.realisation("no job waits", settings=even, notes=notes)
    trainings = [job for job in trainings if job.may_be_paused]
    groups = groups_that_fit(trainings, case.cpus, beside=_SMALL * case.cpus)
    beside = _queue_beside(case, doubtful, len(groups))
    settings = {**dict.fromkeys((job.id for job in trainings), _TURN_WEIGHT), **beside.settings}
    queue = beside.queue
    notes |= {
        key: "; ".join(filter(None, (_DOUBTFUL, beside.notes.get(key)))) for key in beside.settings
    }
    if len(groups) < 2:
        note = "no job is paused: the trainings fit the CPUs together"
        return case.realisation(note, settings=settings, notes=notes, queue=queue)
    sums = [_part(case, group) for group in groups]
    quantum_s = case.choice.quantum_s
    for number, (group, share) in enumerate(zip(groups, sums, strict=True)):
        turn_s = quantum_s * len(groups) * share / math.fsum(sums)
        turn_s = round(max(SHORTEST_TURN * quantum_s, turn_s, _exploring_s(case, group)), 3)
        for job in group:
            settings[job.id] = {**_TURN_WEIGHT, "group": number, "turn_s": turn_s}
            notes[job.id] = f"{turn_s:g} s of every cycle"
    note = f"{len(groups)} groups take turns; the group whose turn it is has the CPUs to itself"
    return case.realisation(note, takes_turns=True, settings=settings, notes=notes, queue=queue)


def _queue_beside(case: Case, doubtful: Sequence[ContainerHistory], groups: int) -> Realisation:
    """Return the queue of jobs that are not paused, by weights: all at once they would keep each
    other from ever reporting.

    One that explores has the weight that a container begins with. Of the others the first has as
    much beside the group whose turn it is as equal parts would give them all (ours).
    """
    found = priorities(replace(case, jobs=list(doubtful)))
    part = min(1.0, len(doubtful) / max(1, groups))

    def weight(key: str, planned: float) -> float:
        return planned if key in case.exploring else max(LEAST_WEIGHT, float(round(planned * part)))

    settings: dict[str, Settings] = {
        key: {"cpu_weight": weight(key, one["cpu_weight"])} for key, one in found.settings.items()
    }
    return replace(found, settings=settings)


def _part(case: Case, group: list[ContainerHistory]) -> float:
    """Return a group's part of the time: that which gives its members CPU time nearest to their
    shares (least squares), at most the sum of these, as they run side by side."""
    needs = [min(needed_cpus(job), case.cpus) for job in group]
    shares = [case.share(job) for job in group]
    near = math.fsum(need * share for need, share in zip(needs, shares, strict=True))
    return min(math.fsum(shares), case.cpus * near / math.fsum(need * need for need in needs))


def _exploring_s(case: Case, group: list[ContainerHistory]) -> float:
    """Return the shortest turn (s) of a group: one thread may be all that a new job has while it
    starts up."""
    explores = any(job.id in case.exploring for job in group)
    return case.choice.queue.explore if explores else 0.0
