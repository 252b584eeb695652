"""When a policy runs: every interval, at once when a job arrives or leaves, less often when idle.

This is FlowCon's pair of listeners and its exponential back-off, kept as data so that any policy
can use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dltools.policy.history import JITTER, MICRO, Track


@dataclass(frozen=True, slots=True)
class Rounds:
    """The interval in force (seconds), when the last round ran (microseconds), and for whom."""

    itval_s: float
    last: int | None
    members: tuple[str, ...]

    def due(self, now: int) -> bool:
        """Tell whether the interval has passed, but for the samplers' jitter."""
        itval = round(self.itval_s * MICRO * (1 - JITTER))
        return self.last is None or now - self.last >= itval

    def ran(self, now: int) -> Rounds:
        """Return the rounds after one at `now`."""
        return Rounds(self.itval_s, now, self.members)

    def backed_off(self, longest_s: float) -> Rounds:
        """Return the rounds with the interval doubled, up to `longest_s`."""
        longest = max(self.itval_s, longest_s)
        return Rounds(min(2 * self.itval_s, longest), self.last, self.members)

    def listen(self, jobs: Iterable[Track], itval_s: float) -> Rounds:
        """Return the rounds for these jobs.

        Where one has arrived or left, the interval is reset to `itval_s` and a round is due.
        """
        members = tuple(sorted(member(job) for job in jobs))
        return self if members == self.members else Rounds(itval_s, None, members)

    def wait_s(self, now: int) -> float:
        """Return the seconds from `now` until the next round."""
        return self.itval_s if self.last is None else (self.last - now) / MICRO + self.itval_s

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `from_json` restores the rounds."""
        return {"itval_s": self.itval_s, "last": self.last, "members": list(self.members)}


def member(job: Track) -> str:
    """Return what tells a job from its own earlier run after a restart."""
    return f"{job.id}@{job.arrived}"


def from_json(data: Mapping[str, Any] | None, itval_s: float) -> Rounds:
    """Return the rounds that were saved, or those of a beginning at interval `itval_s`."""
    if not data:
        return Rounds(itval_s, None, ())
    return Rounds(float(data["itval_s"]), data["last"], tuple(data["members"]))
