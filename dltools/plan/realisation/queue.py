"""The queue of a host's jobs: which run first, which wait at a lower weight, and since when.

Two rules keep a queue from starving a job (both ours):

- jobs of equal standing take turns of `TURN_S` seconds; the one that has waited longest is next;
- a job that has waited for its patience gets a turn before all others.

Patience and that turn bound how much a job is slowed down: see `Bound`.

The queue is a value: the same positions at the same time give the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dltools.labels import longest_pause_s
from dltools.notation.times import MICRO
from dltools.plan.forecast.promise import MAX_SLOWDOWN
from dltools.plan.signals.container_history import JITTER, ContainerHistory

TURN_S = 5.0
"""Seconds that a job keeps the first level before another of equal standing gets it."""

_CYCLE_S = 100.0
"""Seconds from the begin of a waiting job's turn to its next: any ten minutes hold five cycles."""

_FOR_EVER_S = 1e9

_MORE = 6 / 5
"""What is given beyond the guaranteed part, because ten minutes may begin within a turn."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How long a job waits at most in a queue of so many groups, and how long its turn is.

    `equal`: runs of jobs whose turns come as if all jobs were equal, since nothing tells their
    place in the order. `longest`: the longest pause (s) that a run bears, where its owner says so:
    it waits no longer, as far as equal turns of all jobs allow. `promised`: runs of which it is
    promised when they end (see `promise`): these wait for no turn.
    """

    groups: int
    max_slowdown: float = MAX_SLOWDOWN
    equal: frozenset[str] = frozenset()
    longest: Mapping[str, float] = field(default_factory=dict)
    promised: frozenset[str] = frozenset()

    @property
    def turn_s(self) -> float:
        """Length of the turn (s), at most an equal part of the cycle."""
        part = _CYCLE_S / max(1, self.groups)
        return max(TURN_S, min(part, _MORE * part / self.max_slowdown))

    @property
    def patience_s(self) -> float:
        """Longest wait for that turn (s)."""
        return max(_CYCLE_S - self.turn_s, (self.groups - 1) * self.turn_s)

    def turn_of(self, run_id: str) -> float:
        """Length of a job's turn (s)."""
        if run_id in self.equal or run_id in self.promised:
            return TURN_S
        return max(TURN_S, self.turn_s * self.patience_of(run_id) / self.patience_s)

    def patience_of(self, run_id: str) -> float:
        """Longest wait of a job for its turn (s)."""
        if run_id in self.promised:
            return _FOR_EVER_S
        equal_s = (self.groups - 1) * TURN_S
        if run_id in self.equal:
            return equal_s
        return min(self.patience_s, max(equal_s, self.longest.get(run_id, math.inf)))


def longest_pauses(jobs: Iterable[ContainerHistory]) -> dict[str, float]:
    """Return the longest pause (s) that each of some jobs bears whose owner has said one, by run;
    a job that is never paused waits by weights as all others do."""
    found = {job.run_id: longest_pause_s(job.labels) for job in jobs}
    return {run_id: seconds for run_id, seconds in found.items() if 0 < seconds < math.inf}


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A job's position: at the first level or waiting, since `since` (microseconds).

    `urgent`: the job is first because it had waited too long.
    """

    first: bool
    since: int
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Queue:
    """Positions by job, and when they may next change by themselves (microseconds; None: never)."""

    positions: Mapping[str, QueuePosition] = field(default_factory=dict)
    due: int | None = None

    def is_due(self, now: int) -> bool:
        """Tell whether a turn begins or ends at a time by itself."""
        return self.due is not None and now >= self.due

    def due_by(self, now: int, seconds: float) -> Queue:
        """Return the queue, due again in so many seconds at the latest."""
        return self.due_at(now + max(1, round(seconds * MICRO * (1 - JITTER))))

    def due_at(self, time: int) -> Queue:
        """Return the queue, due again at a time (microseconds) at the latest."""
        return replace(self, due=time if self.due is None else min(self.due, time))

    def urgent(self, run_ids: Iterable[str], bound: Bound, now: int) -> list[str]:
        """Return the jobs that go before all others.

        These are the jobs in the middle of an urgent turn, then those that have waited too long,
        the longest wait first. With these go all whose turn would come while theirs lasts: so in a
        long queue turns begin together, and not one by one.
        """
        found = [(run_id, self.positions[run_id]) for run_id in run_ids if run_id in self.positions]
        in_turn = [
            run_id
            for run_id, position in found
            if position.first and position.urgent and now < _after(position, bound.turn_of(run_id))
        ]
        due = {
            run_id: _after(position, bound.patience_of(run_id))
            for run_id, position in found
            if not position.first
        }
        until = now if min(due.values(), default=math.inf) > now else now + round(TURN_S * MICRO)
        waiting = sorted((self.positions[key].since, key) for key in due if due[key] <= until)
        return sorted(in_turn) + [run_id for _, run_id in waiting]

    def turn(self, run_id: str, now: int) -> tuple[int, int]:
        """Return the key by which jobs of equal standing are sorted: new jobs, jobs in the middle
        of a turn, waiting jobs, jobs that have had a turn."""
        position = self.positions.get(run_id)
        if position is None:
            return 0, 0
        if not position.first:
            return 2, position.since
        return (1, 0) if now < _after(position, TURN_S) else (3, -position.since)

    def moved(
        self,
        first: Iterable[str],
        waiting: Iterable[str],
        urgent: Iterable[str],
        equals: Iterable[str],
        bound: Bound,
        now: int,
    ) -> Queue:
        """Return the queue after an order has been set.

        `equals`: jobs at the first level for whose turn a job of equal standing waits. Those whose
        turns end soon after another change end them together, a turn after it.
        """
        hurried, positions, ends = set(urgent), {}, []
        for run_id in first:
            old = self.positions.get(run_id)
            stays = old is not None and old.first and old.urgent == (run_id in hurried)
            since = old.since if old is not None and stays else now
            positions[run_id] = QueuePosition(True, since, run_id in hurried)
        for run_id in waiting:
            old = self.positions.get(run_id)
            waits_already = old is not None and not old.first
            positions[run_id] = old if old and waits_already else QueuePosition(False, now)
            ends.append(_after(positions[run_id], bound.patience_of(run_id)))
        if not ends:
            return Queue(positions)
        ends += [_after(positions[run_id], bound.turn_of(run_id)) for run_id in hurried]
        changes = any(one.first and one.since == now for one in positions.values())
        soonest = now + round(TURN_S * MICRO * (1 - JITTER)) if changes else now
        turns = (_after(positions[run_id], TURN_S) for run_id in equals if run_id not in hurried)
        ends += [max(end, soonest) for end in turns]
        if any(end <= now for end in ends):  # the order stays: look again after a turn
            ends.append(now + round(TURN_S * MICRO))
        return Queue(positions, min(end for end in ends if end > now))


def _after(position: QueuePosition, seconds: float) -> int:
    return position.since + round(seconds * MICRO * (1 - JITTER))
