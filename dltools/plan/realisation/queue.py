"""The queue of a host's jobs: which run first, which wait at a lower weight, and since when.

Two rules keep a queue from starving a job (both ours):

- jobs of equal standing take turns of `TURN_S` seconds; the one that has waited longest is next;
- a job that has waited for `patience_s` gets one turn before all others.

The queue is a value: the same positions at the same time give the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dltools.notation.times import MICRO
from dltools.plan.policy.container_history import JITTER

TURN_S = 5.0
"""Seconds that a job keeps the first level before another of equal standing gets it."""

LEAST_PATIENCE_S = 60.0
PATIENCE_A_GROUP_S = 30.0
"""Longest wait for a turn: six turns for each other group in the queue, at least a minute."""


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

    def urgent(self, run_ids: Iterable[str], groups: int, now: int) -> list[str]:
        """Return the jobs that go before all others in a queue of so many groups.

        These are the jobs in the middle of an urgent turn, then those that have waited too long,
        the longest wait first.
        """
        # fmt: off
        found = [(run_id, self.positions[run_id]) for run_id in run_ids if run_id in self.positions]
        longest_s = patience_s(groups)
        in_turn = [run_id for run_id, position in found
                   if position.first and position.urgent and now < _after(position, TURN_S)]
        waiting = [(position.since, run_id) for run_id, position in found
                   if not position.first and now >= _after(position, longest_s)]
        # fmt: on
        return sorted(in_turn) + [run_id for _, run_id in sorted(waiting)]

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
        self, first: Iterable[str], waiting: Iterable[str], urgent: Iterable[str],
        equals: Iterable[str], groups: int, now: int,
    ) -> Queue:  # fmt: skip
        """Return the queue after an order has been set.

        `equals`: jobs at the first level for whose turn a job of equal standing waits.
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
            ends.append(_after(positions[run_id], patience_s(groups)))
        if not ends:
            return Queue(positions)
        ends += [_after(positions[run_id], TURN_S) for run_id in {*hurried, *equals}]
        if any(end <= now for end in ends):  # the order stays: look again after a turn
            ends.append(now + round(TURN_S * MICRO))
        return Queue(positions, min(end for end in ends if end > now))


def patience_s(groups: int) -> float:
    """Return how long (s) a job waits at most for a turn in a queue of so many groups."""
    return max(LEAST_PATIENCE_S, PATIENCE_A_GROUP_S * (groups - 1))


def _after(position: QueuePosition, seconds: float) -> int:
    return position.since + round(seconds * MICRO * (1 - JITTER))
