"""The queue of a host's jobs: which run first, which wait at a lower weight, and since when.

Two rules keep a queue from starving a job (both ours):

- jobs of equal standing take turns of `TURN_S` seconds; the one that has waited longest is next;
- a job that would else end later than it is promised to gets a turn before all others (see
  `docker_alone`).

The queue is a value: the same positions at the same time give the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dltools.actions.turn_lengths import TURN_S
from dltools.notation.times import MICRO
from dltools.plan.signals.container_history import JITTER

Runs = Collection[str]
"""Jobs, by run."""


class QueuePosition(NamedTuple):
    """A job's position: at the first level or waiting, since `since` (microseconds).

    `urgent`: the job is first because it had to run.
    """

    first: bool
    since: int
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Queue:
    """The positions of a host's jobs."""

    positions: Mapping[str, QueuePosition] = field(default_factory=dict)
    """By run."""

    due: int | None = None
    """When they may next change by themselves (microseconds), None for never."""

    def is_due(self, now: int) -> bool:
        """Tell whether a turn begins or ends at a time by itself."""
        return self.due is not None and now >= self.due

    def due_by(self, now: int, seconds: float) -> Queue:
        """Return the queue, due again in so many seconds at the latest."""
        return self.due_at(now + max(1, round(seconds * MICRO * (1 - JITTER))))

    def due_at(self, time: int) -> Queue:
        """Return the queue, due again at a time (microseconds) at the latest."""
        return self if self.due is not None and self.due <= time else replace(self, due=time)

    def in_urgent_turn(self, run_id: str, now: int) -> bool:
        """Tell whether a job is in the middle of a turn that it got because it had to run."""
        position = self.positions.get(run_id)
        is_urgent = position is not None and position.first and position.urgent
        return is_urgent and now < _after(self.positions[run_id], TURN_S)

    def waited_s(self, run_id: str, now: int) -> float:
        """Return for how long (s) a job has waited, 0 for one that does not."""
        position = self.positions.get(run_id)
        return 0.0 if position is None or position.first else (now - position.since) / MICRO

    def turn(self, run_id: str, now: int) -> tuple[int, int]:
        """Return the key by which jobs of equal standing are sorted: new jobs, jobs in the middle
        of a turn, waiting jobs, jobs that have had a turn."""
        position = self.positions.get(run_id)
        if position is None:
            return 0, 0
        if not position.first:
            return 2, position.since
        return (1, 0) if now < _after(position, TURN_S) else (3, -position.since)

    def moved(self, first: Runs, waiting: Runs, urgent: Runs, equals: Runs, now: int) -> Queue:
        """Return the queue after an order has been set.

        `equals`: jobs at the first level for whose turn a job of equal standing waits. Those whose
        turns end soon after another change end them together, a turn after it.
        """
        hurried = [run_id for run_id in first if run_id in urgent]
        positions = {run_id: QueuePosition(True, now, run_id in urgent) for run_id in first}
        positions |= {run_id: QueuePosition(False, now) for run_id in waiting}
        for run_id, old in self.positions.items():
            if old._replace(since=now) == positions.get(run_id):
                positions[run_id] = old
        if all(position.first for position in positions.values()):
            return Queue(positions)
        ends = [_after(positions[run_id], TURN_S) for run_id in hurried]
        changes = any(position.first and position.since == now for position in positions.values())
        soonest = now + round(TURN_S * MICRO * (1 - JITTER)) if changes else now
        turns = (_after(positions[run_id], TURN_S) for run_id in equals if run_id not in urgent)
        ends += [max(end, soonest) for end in turns]
        if any(end <= now for end in ends):  # the order stays: look again after a turn
            ends.append(now + round(TURN_S * MICRO))
        return Queue(positions, min((end for end in ends if end > now), default=None))


def _after(position: QueuePosition, seconds: float) -> int:
    return position.since + round(seconds * MICRO * (1 - JITTER))
