"""The modes in which jobs run in order: `priority` and `rotate`.

`priority` sets weights so far apart that the first jobs run almost alone. `rotate` lets groups of
jobs run in turn while the others are paused. Both put jobs into the order of their standing, and
into groups that fit the CPUs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dltools.labels import longest_pause_s
from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT, whole_weight
from dltools.notation.times import MICRO
from dltools.plan.forecast.promise import Due
from dltools.plan.policy.by_user import by_user
from dltools.plan.policy.shares import in_proportion
from dltools.plan.realisation.queue import TURN_S, Queue, Runs
from dltools.plan.realisation.settings import SHORTEST_TURN, Settings
from dltools.plan.realisation.shared_host import MILD_NOTE, TURN_NOTE, Realisation, SharedHost
from dltools.plan.signals.busy_threads import is_serving, needed_cpus
from dltools.plan.signals.job import Job
from dltools.text import joined

Needs = Callable[[Job], float]
"""Returns how many CPUs a job can use."""

Standing = tuple[int, bool, float]
"""What jobs are ordered by: the smaller goes first."""

_UNKNOWN: Standing = (sys.maxsize, True, 0.0)
"""Behind all others: the turn of such a job comes by the time that it has waited."""

_EQUAL: Standing = (0, False, 0.0)
"""Of each job, where no order wins and competing costs time: all take turns."""

_KNOWN_BY_S = 40.0
"""CPU seconds by which a job that reports is understood (ours); before that it goes with the first,
as a new job may be a short one."""


def standing(host: SharedHost, job: Job) -> Standing:
    """Return a job's standing.

    First come jobs that explore, in the order in which they started. The others stand by rank;
    then jobs that get all that their threads can use, so that a narrow job is not behind a wide
    one; then by share.
    """
    if job.id in host.exploring:
        return -1, False, float(job.use.started or job.arrived)
    share = round(host.share(job), 9)
    is_full = share * host.cpus >= min(host.need(job), host.cpus) * (1 - 1e-6)
    return host.allocations[job.id].rank, not is_full, 0.0 if is_full else -share


def standings(host: SharedHost) -> dict[str, Standing]:
    """Return the standing of each job that does not serve; an unlimited job equals the first, or
    waits for its turn if nothing is known of it for long (see `runs_in_no_order`)."""
    jobs = [job for job in host.jobs if not is_serving(job)]
    found = {job.id: standing(host, job) for job in jobs}
    if host.choice.are_equal:
        return {key: one if key in host.exploring else _EQUAL for key, one in found.items()}
    unlimited = {job.id for job in host.jobs if host.is_unlimited(job)} - host.exploring
    others = found.keys() - unlimited - host.exploring
    best = min((found[key] for key in others), default=_EQUAL)
    head = _EQUAL if best[0] > 0 else best
    last = runs_in_no_order(host, jobs)
    places = {job.id: _UNKNOWN if job.run_id in last else head for job in jobs}
    return {key: places[key] if key in unlimited else one for key, one in found.items()}


def runs_in_no_order(host: SharedHost, jobs: Iterable[Job]) -> frozenset[str]:
    """Return the runs of those jobs that nothing orders: each gets an equal part, in its turn.

    They are silent although they have explored, or have had `_KNOWN_BY_S`.
    """
    left = [job for job in jobs if host.is_unlimited(job) and job.id not in host.exploring]
    last = [job for job in left if job.progress.reports < 2 or job.use.attained >= _KNOWN_BY_S]
    return frozenset(job.run_id for job in last)


def in_order(host: SharedHost, found: Mapping[str, Standing]) -> list[Job]:
    """Return the jobs that have a standing, in order; equals by arrival."""
    return sorted(
        (job for job in host.jobs if job.id in found),
        key=lambda job: (found[job.id], job.arrived, job.name, job.id),
    )


def groups_that_fit(
    jobs: Sequence[Job], cpus: float, needs: Needs = needed_cpus, beside: float = 0, late: Runs = ()
) -> list[list[Job]]:
    """Return the jobs in groups that fit the CPUs.

    Each job joins the first group that has room for what it needs; one that fits nowhere is its own
    group. Jobs that need at most `beside` CPUs come last, and may join a group that is full, as far
    as they need no more than that together. The runs that are `late` join a group that leaves CPUs
    idle, however many they need: else smaller jobs could pass them for ever.
    """
    groups: list[list[Job]] = []
    rooms: list[float] = []
    full: dict[float, int] = {}  # by need: so many groups have no room for it
    wanted = [(needs(job), job) for job in jobs]
    for need, job in sorted(wanted, key=lambda one: one[0] <= beside):
        spare = beside if need <= beside else 0.0
        least = min(need, _IDLE_CPUS) if job.run_id in late else need
        at = full.get(least, 0)
        while at < len(rooms) and least > rooms[at] + spare:
            at += 1
        full[least] = at
        if at == len(rooms):
            groups.append([])
            rooms.append(cpus)
        groups[at].append(job)
        rooms[at] -= min(need, cpus)
    return groups


LEVELS = (1024.0, 10.0, 2.0)
"""Weights of `priority`: of the first, the next and all others in the queue. The first is the
default of every container, so that a new job can report its first progress, and no job goes before
containers and services that are not ours; where these compete, see `_first_weights`. The kernel's
files hold them as 1024, 10 and 2 in version 1 of cgroups, and as 100, 1 and 1 in version 2, which
has no smaller weight."""

_OTHERS = 0.05
"""Share of the CPUs from which on programs that are no jobs compete for them (ours)."""

_MOST = 64 * LEVELS[0]
"""The most to which the first are raised (ours)."""

_KEPT = 0.85
"""Part of the weights of all jobs that the first have where others compete: one that runs alone
uses its CPUs without a pause, and jobs that compete do not (ours; chosen on 150 random hosts)."""

_IDLE_CPUS = 0.75
"""CPUs that the first leave idle from which on the next runs beside them (ours)."""

MILD_LEVELS = (1024.0, 512.0, 256.0)
"""The same where what is set may stay for good: beside one job of the first, one of the last still
gets a fifth of the CPU time (ours)."""


def priorities(host: SharedHost) -> Realisation:
    """Return weights far apart.

    First come the jobs that get all that their threads can use, then the others in order of their
    shares, so that as many as there are CPUs for run almost alone. Jobs of a higher rank stand
    behind. Work-conserving.
    """
    if host.choice.is_even or not host.choice.weights_order:
        even: dict[str, Settings] = {job.id: {"weight": LEVELS[0]} for job in host.jobs}
        note = "no job waits" if host.choice.is_even else "weights order none beside GPU feeders"
        return host.realisation(note, settings=even)
    found = standings(host)
    jobs = in_order(host, found)
    urgent = urgent_runs(host, jobs)
    turns = _turns(host, jobs, found, urgent)
    late = {job.run_id for job in jobs if _due(host, job).wait_s < -TURN_S}
    groups = groups_that_fit(_in_turn(host, jobs, turns), host.cpus, host.need, late=late)
    groups = _filled(host, groups)
    levels = MILD_LEVELS if host.choice.is_mild else LEVELS
    settings: dict[str, Settings] = {job.id: {"weight": levels[0]} for job in host.jobs}
    notes: dict[str, str] = {}
    for number, group in enumerate(groups):
        for job in group:
            settings[job.id] = {"weight": levels[min(number, len(levels) - 1)]}
            notes[job.id] = _place_in_queue(host, job, number, len(groups))
    first, waiting = groups[0] if groups else [], [job for group in groups[1:] for job in group]
    if not host.choice.is_mild:
        settings |= _first_weights(host, groups, first)
    notes |= {job.id: TURN_NOTE for job in first if job.run_id in urgent}
    note = f"work-conserving; the first of {len(groups)} groups in the queue runs almost alone"
    if host.choice.is_mild:
        note = f"work-conserving; {len(groups)} groups in the queue; {MILD_NOTE}"
    elif waiting:
        note += ", equals in turn; no job waits until it would end much later than without an order"
    contested = frozenset[object]().union(*(turns[job.id].claims for job in waiting))
    equals = [job.run_id for job in first if turns[job.id].claims & contested]
    leading, behind = ([job.run_id for job in group] for group in (first, waiting))
    queue = host.queue.moved(leading, behind, urgent, equals, host.now)
    queue = due_in_time(host, waiting, queue)
    return host.realisation(note, settings=settings, notes=notes, queue=queue)


def _place_in_queue(host: SharedHost, job: Job, number: int, groups: int) -> str:
    """Say in which of so many groups a job stands, and until when it waits at the latest (UTC, to
    ten seconds)."""
    if groups < 2:
        return ""
    waits = number > 0 and not host.choice.is_mild
    wait_s = _due(host, job).wait_s if waits else math.inf
    said = f"{number + 1} of {groups} in the queue"
    if not math.isfinite(wait_s):
        return said
    until = math.ceil((host.now / MICRO + max(0.0, wait_s)) / _SAID_S) * _SAID_S
    hour, minute, second = until // 3600 % 24, until // 60 % 60, until % 60
    return f"{said}, until {hour:02}:{minute:02}:{second:02} at the latest"


_SAID_S = 10
"""To how many seconds it is said until when a job waits: a plan changes where that does."""


def urgent_runs(host: SharedHost, jobs: Sequence[Job]) -> frozenset[str]:
    """Return the runs of the jobs that go before all others that are known: those that must run
    now, with all whose turn would come while theirs lasts, and those in the middle of such a turn.
    """
    waits = {job.run_id: _due(host, job).wait_s for job in jobs}
    until_s = TURN_S if min(waits.values(), default=math.inf) <= _TICK_S else _TICK_S
    in_turn = [run_id for run_id in waits if host.queue.in_urgent_turn(run_id, host.now)]
    return frozenset(in_turn).union(key for key, wait_s in waits.items() if wait_s <= until_s)


def due_in_time(host: SharedHost, waiting: Iterable[Job], queue: Queue) -> Queue:
    """Return the queue, due again when the first of those that wait must run."""
    waits = [_due(host, job).wait_s for job in waiting]
    spare = [wait_s for wait_s in waits if _TICK_S < wait_s < math.inf]
    return queue.due_at(host.now + round(min(spare) * MICRO) + 1) if spare else queue


_ANY_TIME = Due(math.inf, 1.0)
_TICK_S = 0.1
"""A time that is shorter is none: it is looked at when it is over (s)."""


def _due(host: SharedHost, job: Job) -> Due:
    """Return until when a job can wait: so that it ends in time, and no longer in one stretch than
    its owner says."""
    due = host.dues.get(job.run_id, _ANY_TIME)
    longest_s = longest_pause_s(job.labels)
    if not 0 < longest_s < math.inf:
        return due
    left_s = longest_s - host.queue.waited_s(job.run_id, host.now)
    return Due(min(due.wait_s, left_s), due.had)


def others_compete(host: SharedHost) -> bool:
    """Tell whether programs that are no jobs compete for the CPUs."""
    return host.others is not None and host.others >= _OTHERS


def _filled(host: SharedHost, groups: list[list[Job]]) -> list[list[Job]]:
    """Return the groups; where others compete, and the first one leaves CPUs idle, with the next
    job in it: by the weight of one that waits these CPUs would be the others'."""
    spare = host.cpus - sum(map(host.need, groups[0] if groups else ()))
    if len(groups) < 2 or spare < _IDLE_CPUS or not others_compete(host):
        return groups
    first, (beside, *rest), *others = groups
    return [[*first, beside], *([rest] if rest else []), *others]


def _first_weights(
    host: SharedHost, groups: list[list[Job]], first: list[Job]
) -> dict[str, Settings]:
    """Return the weights of the group that runs first.

    Where others compete for the CPUs, it has most of the weights of those who wait too: what the
    jobs have together is theirs, and is no gift to others. Its jobs share them by the CPUs that
    they need, and the containers of a job share those of the job; none has less than the default.
    """
    if not others_compete(host):
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
    return {key: {"weight": whole_weight(one, LEVELS[0], _MOST)} for key, one in raised.items()}


class _Turn(NamedTuple):
    """A job's place in the order: whether it `goes_first`; else the smaller `place` does. Jobs are
    equals, and take turns, that have one of their `claims` in common."""

    goes_first: bool
    place: tuple[object, ...]
    claims: frozenset[object]


def _turns(
    host: SharedHost, jobs: list[Job], found: Mapping[str, Standing], urgent: Collection[str]
) -> dict[str, _Turn]:
    """Return the turns of jobs with these standings, by id. Where users come first, the first jobs
    of all users are equals, then the second ones; a user's own jobs have their standings among
    themselves, and that which must run goes before those alone: Docker alone gives more to who has
    many. The user whose turn is next goes first.
    """
    users = by_user(jobs) if host.choice.queue.users == "fair" else {}
    turns: dict[str, _Turn] = {}
    if len(users) < 2:
        for job in jobs:
            goes_first = job.id in host.exploring or job.run_id in urgent
            turns[job.id] = _Turn(goes_first, (found[job.id],), frozenset({found[job.id]}))
        return turns
    waited = {job.id: host.queue.turn(job.run_id, host.now) for job in jobs}

    def key(job: Job) -> tuple[object, ...]:
        return job.run_id not in urgent, found[job.id], waited[job.id], job.use.attained

    for own in users.values():
        known = [waited[job.id] for job in own if job.run_id in host.queue.positions]
        in_turn = [turn for turn in known if turn[0] == 1]
        next_user = max(in_turn or known, default=(0, 0))
        for number, job in enumerate(sorted(own, key=key)):
            claims = frozenset[object]({number, (job.user, found[job.id])})
            turns[job.id] = _Turn(job.id in host.exploring, (number, next_user), claims)
    return turns


_BEHIND = 0.8
"""A job that has had less than this part of what Docker alone would have given it goes before new
ones (ours)."""


def _in_turn(host: SharedHost, jobs: list[Job], turns: Mapping[str, _Turn]) -> list[Job]:
    """Return the jobs in order: new and urgent ones first, and of these those that are behind
    Docker alone, the farthest first; then by standing; equals take turns."""

    def key(job: Job) -> tuple[object, ...]:
        turn, had = turns[job.id], _due(host, job).had
        return (
            not turn.goes_first,
            had if turn.goes_first and had < _BEHIND else 1.0,
            turn.place,
            host.queue.turn(job.run_id, host.now),
            0.0 if job.run_id in host.queue.positions else job.use.attained,
        )

    return sorted(jobs, key=key)


_DOUBTFUL = "never paused before it reports, or its owner says what it is"
_UNPAUSABLE = "runs beside the turns"

_SMALL = 0.25
"""A job that needs at most this part of the CPUs has its turn beside a full group: alone it would
leave most of them idle (ours)."""


_TURN_WEIGHT: Settings = {"weight": DEFAULT_CPU_WEIGHT}
"""What a job has beside no turns of others: it may have waited by weights before."""


def rotation(host: SharedHost) -> Realisation:
    """Return turns in proportion to shares, of groups whose threads fit the CPUs.

    As many trainings as there are CPUs for run at a time. Serving containers are never paused, nor
    are silent ones that may be no trainings: these queue by weights beside the turns of the others.
    New jobs come first, with a turn that is long enough for them to report.
    """
    trainings = in_order(host, standings(host))
    notes = {job.id: "serves: never paused" for job in host.jobs if is_serving(job)}
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
        weights = _first_weights(host, groups, group)
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
        key: {"weight": weight(key, one["weight"])} for key, one in realisation.settings.items()
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
