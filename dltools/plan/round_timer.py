"""When a policy runs: every interval, at once when a job arrives or leaves, less often when idle.

This is FlowCon's pair of listeners and its exponential back-off, kept as data, for every policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dltools.plan.policy.base import Needs, Pace
from dltools.plan.policy.container_history import JITTER, MICRO, Track


@dataclass(frozen=True, slots=True)
class Rounds:
    """The interval in force (seconds; None: no rounds by time), when the last round ran
    (microseconds; None: one is due), and for whom."""

    itval_s: float | None
    last: int | None = None
    members: tuple[str, ...] = ()

    def due(self, now: int) -> bool:
        """Tell whether the interval has passed, but for the samplers' jitter."""
        if self.last is None or self.itval_s is None:
            return self.last is None
        return now - self.last >= round(self.itval_s * MICRO * (1 - JITTER))

    def listen(self, jobs: Iterable[Track], needs: Needs) -> Rounds:
        """Return the rounds for these jobs.

        Where one has arrived or left, the interval is reset and a round is due.
        """
        members = tuple(sorted(job.member for job in jobs))
        return self if members == self.members else Rounds(needs.itval_s, None, members)

    def interrupted(self) -> Rounds:
        """Return the rounds with one due at once."""
        return replace(self, last=None)

    def ran(self, now: int, pace: Pace, needs: Needs) -> Rounds:
        """Return the rounds after one at `now`, the interval kept, doubled or reset."""
        itval = self.itval_s
        if pace is Pace.RESET:
            itval = needs.itval_s
        elif pace is Pace.DOUBLE and itval is not None:
            itval = min(2 * itval, max(itval, needs.longest_s))
        return Rounds(itval, now, self.members)

    def wait_s(self, now: int) -> float | None:
        """Return the seconds from `now` until the next round; None where time brings none."""
        if self.last is None or self.itval_s is None:
            return self.itval_s
        return max(0.0, (self.last - now) / MICRO + self.itval_s)

    def to_json(self) -> list[Any]:
        """Return JSON values from which `from_json` restores the rounds."""
        return [self.itval_s, self.last, list(self.members)]


def from_json(data: Any) -> Rounds:
    """Return the rounds that were saved. Raises TypeError or ValueError."""
    itval, last, members = data
    return Rounds(itval if itval is None else float(itval), last, tuple(members))


def by_member(saved: Mapping[str, Any], jobs: Iterable[Track]) -> dict[str, Any]:
    """Return what a policy has saved by member, of these jobs alone."""
    return {key: saved[key] for job in jobs if (key := job.member) in saved}
