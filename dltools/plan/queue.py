"""The line of a host's jobs: who runs at the first level, who waits at a lower one, and since when.

Two rules keep a line from starving anybody (both ours):

- jobs of equal standing take turns of `TURN_S` seconds, whoever has waited longest first;
- a job that has waited for `patience_s` gets one turn before all others.

The line is a value: the same places at the same time give the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.plan.policy.container_history import JITTER, MICRO

TURN_S = 5.0
"""Seconds that a job keeps the first level before another of equal standing gets it."""

LEAST_PATIENCE_S = 60.0
PATIENCE_A_GROUP_S = 30.0
"""Longest wait for a turn: six turns for each other group in line, at least a minute."""


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A job's place: at the first level or waiting, `since` when (microseconds). `urgent`: it is
    first because it had waited too long."""

    first: bool
    since: int
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Queue:
    """Places by job, and when they may next change by themselves (microseconds; None: never)."""

    positions: Mapping[str, QueuePosition] = field(default_factory=dict)
    due: int | None = None

    def is_due(self, now: int) -> bool:
        """Tell whether somebody's turn begins or ends at a time by itself."""
        return self.due is not None and now >= self.due

    def urgent(self, run_ids: Iterable[str], groups: int, now: int) -> list[str]:
        """Return the jobs that go before all others: those in the middle of such a turn, then those
        that have waited too long in a line of so many groups, the longest waiting first."""
        found = [(m, self.positions[m]) for m in run_ids if m in self.positions]
        serving = [m for m, p in found if p.first and p.urgent and now < _after(p, TURN_S)]
        waiting = [(p.since, m) for m, p in found if not p.first
                   and now >= _after(p, patience_s(groups))]  # fmt: skip
        return sorted(serving) + [m for _, m in sorted(waiting)]

    def turn(self, run_id: str, now: int) -> tuple[int, int]:
        """Return the key by which jobs of equal standing are sorted: newcomers, who is in the
        middle of a turn, who waits, who has had a turn."""
        place = self.positions.get(run_id)
        if place is None:
            return 0, 0
        if not place.first:
            return 2, place.since
        return (1, 0) if now < _after(place, TURN_S) else (3, -place.since)

    def moved(
        self, first: Iterable[str], waiting: Iterable[str], urgent: Iterable[str],
        equals: Iterable[str], groups: int, now: int,
    ) -> Queue:  # fmt: skip
        """Return the line after an order has been set.

        `equals` are jobs at the first level for whose turn somebody of equal standing waits.
        """
        hurried, positions, ends = set(urgent), {}, []
        for run_id in first:
            old = self.positions.get(run_id)
            stays = old is not None and old.first and old.urgent == (run_id in hurried)
            since = old.since if old is not None and stays else now
            positions[run_id] = QueuePosition(True, since, run_id in hurried)
        for run_id in waiting:
            old = self.positions.get(run_id)
            positions[run_id] = (
                old if old is not None and not old.first else QueuePosition(False, now)
            )
            ends.append(_after(positions[run_id], patience_s(groups)))
        if not ends:
            return Queue(positions)
        ends += [_after(positions[run_id], TURN_S) for run_id in {*hurried, *equals}]
        if any(end <= now for end in ends):  # it goes on as it is: look again after a turn
            ends.append(now + round(TURN_S * MICRO))
        return Queue(positions, min(end for end in ends if end > now))

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `from_json` restores the line."""
        positions = {m: [p.first, p.since, p.urgent] for m, p in sorted(self.positions.items())}
        return {"places": positions, "due": self.due}


def from_json(data: Mapping[str, Any]) -> Queue:
    """Return the line that was saved. Raises KeyError, TypeError or ValueError."""
    positions = {
        str(run_id): QueuePosition(bool(first), int(since), bool(urgent))
        for run_id, (first, since, urgent) in data["places"].items()
    }
    return Queue(positions, None if data["due"] is None else int(data["due"]))


def patience_s(groups: int) -> float:
    """Return how long (s) a job waits at most for a turn in a line of so many groups."""
    return max(LEAST_PATIENCE_S, PATIENCE_A_GROUP_S * (groups - 1))


def _after(place: QueuePosition, seconds: float) -> int:
    return place.since + round(seconds * MICRO * (1 - JITTER))
