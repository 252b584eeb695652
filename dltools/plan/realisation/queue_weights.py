"""The mode `priority`: weights so far apart that the first jobs of a queue run almost alone, and
the others have what these leave."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dltools.actions.settings import Settings
from dltools.actions.turn_lengths import TURN_S
from dltools.notation.limits import whole_weight
from dltools.notation.times import MICRO
from dltools.plan.policy.shares import in_proportion
from dltools.plan.realisation.order import (
    IDLE_CPUS,
    Precedence,
    due,
    due_in_time,
    groups_that_fit,
    in_order,
    in_turn,
    precedences,
    standings,
    urgent_runs,
)
from dltools.plan.realisation.queue_positions import Queue, Runs
from dltools.plan.realisation.shared_host import MILD_NOTE, TURN_NOTE, Realisation, SharedHost
from dltools.plan.signals.job import Job

LEVELS = (1024.0, 10.0, 2.0)
"""Weights of `priority`: of the first, the next and all others in the queue. The first is the
default of every container, so that a new job can report its first progress, and no job goes before
containers and services that are not ours; where these compete, see `first_weights`. The kernel's
files hold them as 1024, 10 and 2 in version 1 of cgroups, and as 100, 1 and 1 in version 2, which
has no smaller weight."""

_MOST = 64 * LEVELS[0]
"""The most to which the first are raised (ours)."""

_KEPT = 0.85
"""Where others compete, the first jobs have this part of the weights that all would have (ours,
chosen on 150 random hosts). Less than all is enough: jobs that compete pause while they wait for
each other, and a job that runs alone does not."""

MILD_LEVELS = (1024.0, 512.0, 256.0)
"""The same where what is set may stay for good: beside one job of the first, one of the last still
gets a fifth of the CPU time (ours)."""


def priorities(host: SharedHost) -> Realisation:
    """Return weights far apart, by which jobs queue in the order of `in_turn`, in groups that fit
    the CPUs."""
    if host.choice.is_even or not host.choice.weights_order:
        even: dict[str, Settings] = {job.id: {"weight": LEVELS[0]} for job in host.jobs}
        note = "no job waits" if host.choice.is_even else "weights order no job beside GPU feeders"
        return host.realisation(note, settings=even)
    ranking = standings(host)
    jobs = in_order(host, ranking)
    urgent = urgent_runs(host, jobs)
    turns = precedences(host, jobs, ranking, urgent)
    late = {job.run_id for job in jobs if due(host, job).wait_s < -TURN_S}
    groups = groups_that_fit(in_turn(host, jobs, turns), host.cpus, host.need, late=late)
    groups = _filled(host, groups)
    first, *behind = groups or [[]]
    levels = MILD_LEVELS if host.choice.is_mild else LEVELS
    settings: dict[str, Settings] = {job.id: {"weight": levels[0]} for job in host.jobs}
    notes: dict[str, str] = {}
    for number, group in enumerate(groups):
        for job in group:
            settings[job.id] = {"weight": levels[min(number, len(levels) - 1)]}
            notes[job.id] = _place_in_queue(host, job, number, len(groups))
    if not host.choice.is_mild:
        settings |= first_weights(host, groups, first)
    notes |= {job.id: TURN_NOTE for job in first if job.run_id in urgent}
    waiting = [job for group in behind for job in group]
    queue = _moved(host, first, waiting, turns, urgent)
    return host.realisation(_note(host, len(groups)), settings=settings, notes=notes, queue=queue)


def _moved(
    host: SharedHost,
    first: list[Job],
    waiting: list[Job],
    turns: Mapping[str, Precedence],
    urgent: Runs,
) -> Queue:
    """Return the queue with these jobs at the first level, and these behind them."""
    contested = frozenset[object]().union(*(turns[job.id].claims for job in waiting))
    equals = [job.run_id for job in first if turns[job.id].claims & contested]
    leading, behind = ([job.run_id for job in group] for group in (first, waiting))
    queue = host.queue.moved(leading, behind, urgent, equals, host.now)
    return due_in_time(host, waiting, queue)


def _note(host: SharedHost, groups: int) -> str:
    if host.choice.is_mild:
        return f"work-conserving; {groups} groups in the queue; {MILD_NOTE}"
    note = f"work-conserving; the first of {groups} groups in the queue runs almost alone"
    if groups > 1:
        note += ", equals in turn; no job waits until it would end much later than without an order"
    return note


def _place_in_queue(host: SharedHost, job: Job, number: int, groups: int) -> str:
    """Say in which of so many groups a job stands, and until when it waits at the latest (UTC, to
    ten seconds)."""
    if groups < 2:
        return ""
    waits = number > 0 and not host.choice.is_mild
    wait_s = due(host, job).wait_s if waits else math.inf
    said = f"{number + 1} of {groups} in the queue"
    if not math.isfinite(wait_s):
        return said
    until = math.ceil((host.now / MICRO + max(0.0, wait_s)) / _SAID_S) * _SAID_S
    hour, minute, second = until // 3600 % 24, until // 60 % 60, until % 60
    return f"{said}, until {hour:02}:{minute:02}:{second:02} at the latest"


_SAID_S = 10
"""To how many seconds it is said until when a job waits: a plan changes where that does."""


def _filled(host: SharedHost, groups: list[list[Job]]) -> list[list[Job]]:
    """Return the groups; where others compete, and the first one leaves CPUs idle, with the next
    job in it: by the weight of one that waits these CPUs would be the others'."""
    spare = host.cpus - sum(map(host.need, groups[0] if groups else ()))
    if len(groups) < 2 or spare < IDLE_CPUS or not host.others_compete:
        return groups
    first, (beside, *rest), *others = groups
    return [[*first, beside], *([rest] if rest else []), *others]


def first_weights(
    host: SharedHost, groups: list[list[Job]], first: list[Job]
) -> dict[str, Settings]:
    """Return the weights of the group that runs first.

    Where others compete for the CPUs, it has most of the weights of those who wait too: what the
    jobs have together is theirs, and is no gift to others. Its jobs share them by the CPUs that
    they need, and the containers of a job share those of the job; none has less than the default.
    """
    if not host.others_compete:
        return {job.id: {"weight": LEVELS[0]} for job in first}
    each = {
        (job.id, container.id): min(host.need(job), host.cpus) / len(job.containers)
        for group in groups
        for job in group
        for container in job.containers
    }
    fair = host.cpus / max(1, len(each))
    total = _KEPT * math.fsum(min(1.0, need / fair) for need in each.values())
    keys = {job.id: [(job.id, container.id) for container in job.containers] for job in first}
    needs = {key: each[key] for own in keys.values() for key in own}
    times = in_proportion(needs, total, 1.0)
    raised = {key: LEVELS[0] * times[own[0]] for key, own in keys.items()}
    return {key: {"weight": whole_weight(level, LEVELS[0], _MOST)} for key, level in raised.items()}
