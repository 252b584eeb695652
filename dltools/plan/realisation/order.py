"""The order of jobs that cannot all run at once: their standing, in groups that fit the CPUs, and
who must run now so that it ends in time.

`queue_weights` and `rotation` turn it into settings.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from dltools.actions.turn_lengths import TURN_S
from dltools.labels import longest_pause_s
from dltools.notation.times import MICRO
from dltools.plan.forecast.docker_alone import Due
from dltools.plan.policy.by_user import by_user
from dltools.plan.realisation.queue_positions import Queue, Runs
from dltools.plan.realisation.shared_host import SharedHost
from dltools.plan.signals.busy_threads import is_serving, needed_cpus
from dltools.plan.signals.job import Job

Needs = Callable[[Job], float]
"""Returns how many CPUs a job can use."""

IDLE_CPUS = 0.75
"""CPUs that the first leave idle from which on the next runs beside them (ours)."""

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
    ranking = {job.id: standing(host, job) for job in jobs}
    if host.choice.are_equal:
        return {key: place if key in host.exploring else _EQUAL for key, place in ranking.items()}
    unlimited = {job.id for job in host.jobs if host.is_unlimited(job)} - host.exploring
    others = ranking.keys() - unlimited - host.exploring
    best = min((ranking[key] for key in others), default=_EQUAL)
    head = _EQUAL if best[0] > 0 else best
    last = runs_in_no_order(host, jobs)
    places = {job.id: _UNKNOWN if job.run_id in last else head for job in jobs}
    return {key: places[key] if key in unlimited else place for key, place in ranking.items()}


def runs_in_no_order(host: SharedHost, jobs: Iterable[Job]) -> frozenset[str]:
    """Return the runs of those jobs that nothing orders: each gets an equal part, in its turn.

    They are silent although they have explored, or have had `_KNOWN_BY_S`.
    """
    left = [job for job in jobs if host.is_unlimited(job) and job.id not in host.exploring]
    last = [job for job in left if job.progress.reports < 2 or job.use.attained >= _KNOWN_BY_S]
    return frozenset(job.run_id for job in last)


def in_order(host: SharedHost, ranking: Mapping[str, Standing]) -> list[Job]:
    """Return the jobs that have a standing, in order; equals by arrival."""
    return sorted(
        (job for job in host.jobs if job.id in ranking),
        key=lambda job: (ranking[job.id], job.arrived, job.name, job.id),
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
    pairs = [(needs(job), job) for job in jobs]
    for need, job in sorted(pairs, key=lambda pair: pair[0] <= beside):
        spare = beside if need <= beside else 0.0
        least = min(need, IDLE_CPUS) if job.run_id in late else need
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


class Precedence(NamedTuple):
    """A job's place in the order: whether it `goes_first`; else the smaller `place` does. Jobs are
    equals, and take turns, that have one of their `claims` in common."""

    goes_first: bool
    place: tuple[object, ...]
    claims: frozenset[object]


def precedences(
    host: SharedHost, jobs: list[Job], ranking: Mapping[str, Standing], urgent: Collection[str]
) -> dict[str, Precedence]:
    """Return the precedence of jobs with these standings, by id. Where users come first, the first
    jobs of all users are equals, then the second ones; a user's own jobs have their standings among
    themselves, and that which must run goes before those alone: Docker alone gives more to who has
    many. The user whose turn is next goes first.
    """
    users = by_user(jobs) if host.choice.queue.users == "fair" else {}
    turns: dict[str, Precedence] = {}
    if len(users) < 2:
        for job in jobs:
            goes_first = job.id in host.exploring or job.run_id in urgent
            turns[job.id] = Precedence(goes_first, (ranking[job.id],), frozenset({ranking[job.id]}))
        return turns
    waited = {job.id: host.queue.turn(job.run_id, host.now) for job in jobs}

    def key(job: Job) -> tuple[object, ...]:
        return job.run_id not in urgent, ranking[job.id], waited[job.id], job.use.attained

    for own in users.values():
        queued = [waited[job.id] for job in own if job.run_id in host.queue.positions]
        current = [turn for turn in queued if turn[0] == 1]
        next_user = max(current or queued, default=(0, 0))
        for number, job in enumerate(sorted(own, key=key)):
            claims = frozenset[object]({number, (job.user, ranking[job.id])})
            turns[job.id] = Precedence(job.id in host.exploring, (number, next_user), claims)
    return turns


_BEHIND = 0.8
"""A job that has had less than this part of what Docker alone would have given it goes before new
ones (ours)."""


def in_turn(host: SharedHost, jobs: list[Job], turns: Mapping[str, Precedence]) -> list[Job]:
    """Return the jobs in order: new and urgent ones first, and of these those that are behind
    Docker alone, the farthest first; then by standing; equals take turns."""

    def key(job: Job) -> tuple[object, ...]:
        turn, had = turns[job.id], due(host, job).had
        return (
            not turn.goes_first,
            had if turn.goes_first and had < _BEHIND else 1.0,
            turn.place,
            host.queue.turn(job.run_id, host.now),
            0.0 if job.run_id in host.queue.positions else job.use.attained,
        )

    return sorted(jobs, key=key)


def urgent_runs(host: SharedHost, jobs: Sequence[Job]) -> frozenset[str]:
    """Return the runs of the jobs that go before all others that are known: those that must run
    now, with all whose turn would come while theirs lasts, and those in the middle of such a turn.
    """
    waits = {job.run_id: due(host, job).wait_s for job in jobs}
    until_s = TURN_S if min(waits.values(), default=math.inf) <= _TICK_S else _TICK_S
    current = [run_id for run_id in waits if host.queue.in_urgent_turn(run_id, host.now)]
    return frozenset(current).union(key for key, wait_s in waits.items() if wait_s <= until_s)


def due_in_time(host: SharedHost, waiting: Iterable[Job], queue: Queue) -> Queue:
    """Return the queue, due again when the first of those that wait must run."""
    waits = [due(host, job).wait_s for job in waiting]
    spare = [wait_s for wait_s in waits if _TICK_S < wait_s < math.inf]
    return queue.due_at(host.now + round(min(spare) * MICRO) + 1) if spare else queue


_ANY_TIME = Due(math.inf, 1.0)
_TICK_S = 0.1
"""A time that is shorter is none: it is looked at when it is over (s)."""


def due(host: SharedHost, job: Job) -> Due:
    """Return until when a job can wait: so that it ends in time, and no longer in one stretch than
    its owner says."""
    promised = host.dues.get(job.run_id, _ANY_TIME)
    longest_s = longest_pause_s(job.labels)
    if not 0 < longest_s < math.inf:
        return promised
    left_s = longest_s - host.queue.waited_s(job.run_id, host.now)
    return Due(min(promised.wait_s, left_s), promised.had)
