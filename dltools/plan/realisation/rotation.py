"""The mode `rotate`: groups of jobs run in turn while the others are paused."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from dltools.actions.settings import SHORTEST_TURN, Settings
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

    As many trainings as there are CPUs for run at a time. Serving containers are never paused, nor
    are silent ones that may be no trainings: these queue by weights beside the turns of the others.
    New jobs come first, with a turn that is long enough for them to report.
    """
    trainings = in_order(host, standings(host))
    notes = {job.id: "is a server: never paused" for job in host.jobs if is_serving(job)}
    spread = {job.id for job in host.jobs if host.has_members_elsewhere(job)}
    notes |= dict.fromkeys(spread, "has members elsewhere: never paused")
    trainings = [job for job in trainings if job.id not in spread]
    doubtful = [job for job in trainings if not job.may_be_paused]
    if host.choice.is_even:
        even = {job.id: _TURN_WEIGHT for job in host.jobs}
        return host.realisation("no job waits", settings=even, notes=notes)
    trainings = [job for job in trainings if job.may_be_paused]
    groups = groups_that_fit(trainings, host.cpus, host.need, beside=_SMALL * host.cpus)
    beside = _queue_beside(host, doubtful, len(groups))
    settings = {**dict.fromkeys((job.id for job in trainings), _TURN_WEIGHT), **beside.settings}
    queue = beside.queue
    for job in doubtful:
        why = _UNPAUSABLE if "pause" in job.in_force.cannot else _DOUBTFUL
        notes[job.id] = joined(why, beside.notes.get(job.id))
    if len(groups) < 2:
        note = "no job is paused: the trainings fit the CPUs together"
        return host.realisation(note, settings=settings, notes=notes, queue=queue)
    queue = due_in_time(host, trainings, queue)
    quantum_s = host.choice.quantum_s
    parts = _parts(host, groups, urgent_runs(host, trainings))
    for number, group in enumerate(groups):
        weights = first_weights(host, groups, group)
        turn_s = quantum_s * len(groups) * parts[number]
        explores = any(job.id in host.exploring for job in group)
        explore_s = host.choice.queue.explore if explores else 0.0  # it may start on one thread
        turn_s = round(max(SHORTEST_TURN * quantum_s, turn_s, explore_s), 3)
        for job in group:
            settings[job.id] = {**weights[job.id], "group": number, "turn_s": turn_s}
            notes[job.id] = f"{turn_s:g} s of every cycle"
    note = f"{len(groups)} groups take turns; the group whose turn it is has the CPUs to itself"
    return host.realisation(note, settings=settings, notes=notes, queue=queue)


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
