"""The mode `rotate`: groups of jobs run in turn while the others are paused."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from dltools.actions.settings import Settings
from dltools.actions.turn_lengths import SHORTEST_TURN
from dltools.notation.limits import DEFAULT_WEIGHT, whole_weight
from dltools.plan.realisation.order import (
    due_in_time,
    groups_that_fit,
    in_order,
    standings,
    urgent_runs,
)
from dltools.plan.realisation.queue_weights import first_weights, priorities
from dltools.plan.realisation.shared_host import Realisation, SharedHost
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.job import Job
from dltools.text import joined

_DOUBTFUL = "never paused before it reports, or its owner says what it is"
_UNPAUSABLE = "runs beside the turns"

_SMALL = 0.25
"""A job that needs at most this part of the CPUs has its turn beside a full group: alone it would
leave most of them idle (ours)."""


_TURN_WEIGHT: Settings = {"weight": DEFAULT_WEIGHT}
"""What a job has beside no turns of others: it may have waited by weights before."""


def rotation(host: SharedHost) -> Realisation:
    """Return turns in proportion to shares, of groups whose threads fit the CPUs.

    Only jobs that are known to be trainings are paused. Servers and jobs with members elsewhere
    run all the time. Jobs that may be no trainings, or may not be paused, queue by weights beside
    the turns. A group with a new job has a turn that is long enough for it to report.
    """
    apart = {job.id for job in host.jobs if job.membership.is_spread(host.jobs_elsewhere)}
    notes = {job.id: "is a server: never paused" for job in host.jobs if is_serving(job)}
    notes |= dict.fromkeys(apart, "has members elsewhere: never paused")
    if host.choice.is_even:
        even = {job.id: _TURN_WEIGHT for job in host.jobs}
        return host.realisation("no job waits", settings=even, notes=notes)
    jobs = [job for job in in_order(host, standings(host)) if job.id not in apart]
    trainings = [job for job in jobs if job.may_be_paused]
    doubtful = [job for job in jobs if not job.may_be_paused]
    groups = groups_that_fit(trainings, host.cpus, host.need, beside=_SMALL * host.cpus)
    beside = _queue_beside(host, doubtful, len(groups))
    for job in doubtful:
        why = _UNPAUSABLE if "pause" in job.in_force.cannot else _DOUBTFUL
        notes[job.id] = joined(why, beside.notes.get(job.id))
    settings = {**{job.id: _TURN_WEIGHT for job in trainings}, **beside.settings}
    queue, note = beside.queue, "no job is paused: the trainings fit the CPUs together"
    if len(groups) > 1:
        queue = due_in_time(host, trainings, queue)
        note = f"{len(groups)} groups take turns; the group whose turn it is has the CPUs to itself"
        turns = _turns(host, groups)
        settings |= turns
        notes |= {key: f"{turn['turn_s']:g} s of every cycle" for key, turn in turns.items()}
    return host.realisation(note, settings=settings, notes=notes, queue=queue)


def _turns(host: SharedHost, groups: list[list[Job]]) -> dict[str, Settings]:
    """Return the settings of groups that take turns."""
    quantum_s, settings = host.choice.quantum_s, dict[str, Settings]()
    late = urgent_runs(host, [job for group in groups for job in group])
    for number, (group, part) in enumerate(zip(groups, _parts(host, groups, late), strict=True)):
        explores = any(job.id in host.exploring for job in group)
        explore_s = host.choice.queue.explore if explores else 0.0  # it may start on one thread
        turn_s = max(SHORTEST_TURN * quantum_s, quantum_s * len(groups) * part, explore_s)
        for key, weight in first_weights(host, groups, group).items():
            settings[key] = {**weight, "group": number, "turn_s": round(turn_s, 3)}
    return settings


def _queue_beside(host: SharedHost, doubtful: Sequence[Job], groups: int) -> Realisation:
    """Return the queue of jobs that are not paused, by weights: all at once they would keep each
    other from ever reporting.

    One that explores has the weight that a container begins with. Of the others the first has as
    much beside the group whose turn it is as equal parts would give them all (ours).
    """
    realisation = priorities(replace(host, jobs=list(doubtful)))
    parts = len(doubtful) if host.choice.weights_order else 1
    part = min(1.0, parts / max(1, groups))

    def weight(key: str, planned: float) -> float:
        return planned if key in host.exploring else whole_weight(planned * part)

    settings: dict[str, Settings] = {
        key: {"weight": weight(key, given["weight"])} for key, given in realisation.settings.items()
    }
    return replace(realisation, settings=settings)


def _parts(host: SharedHost, groups: list[list[Job]], late: Collection[str]) -> list[float]:
    """Return each group's part of the time: by the shares of its jobs, or all to those with a job
    that would else end later than it is promised to."""
    parts = [_part(host, group) for group in groups]
    if late:
        parts = [float(any(job.run_id in late for job in group)) for group in groups]
    total = math.fsum(parts)
    return [part / total for part in parts]


def _part(host: SharedHost, group: Sequence[Job]) -> float:
    """Return a group's part of the time: that which gives its members CPU time nearest to their
    shares (least squares), at most the sum of these, as they run side by side."""
    needs = [min(host.need(job), host.cpus) for job in group]
    shares = [host.share(job) for job in group]
    near = math.fsum(need * share for need, share in zip(needs, shares, strict=True))
    return min(math.fsum(shares), host.cpus * near / math.fsum(need * need for need in needs))
