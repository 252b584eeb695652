"""The CPU seconds that a job needs for each epoch, or for each step, from what it has reported.

Ours. The CPU time before the first report is start-up as well, so that it says too much: only what
lies between two reports counts. A job that competes uses CPU time without getting on, so that the
least of the newest intervals is nearest to what it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

_SHORTEST = 0.5
"""CPU seconds between two reports that are compared: less is lost in the sampling."""

_NEWEST = 8
"""Intervals that count: an epoch may become longer."""


@dataclass(frozen=True, slots=True)
class EpochCost:
    """The newest report that closed an interval: its `position` (epoch or step), the CPU seconds
    by then, how far the interval went (`advance`), and the CPU seconds for each unit in the newest
    intervals."""

    position: float
    work: float
    advance: float = 0.0
    needs: tuple[float, ...] = ()

    def after(self, position: float, work: float) -> EpochCost:
        """Return the cost after a report; training that begins anew tells none yet."""
        if position < self.position / 2:
            return EpochCost(position, work)
        if position <= self.position or work - self.work < _SHORTEST:
            return self
        advance = position - self.position
        needs = (*self.needs, (work - self.work) / advance)
        return EpochCost(position, work, advance, needs[-_NEWEST:])

    def left(self, total: float, newest: float, attained: float) -> float | None:
        """Return the CPU seconds that are left to a total, None before two reports.

        `newest` is the newest position; `attained` the CPU seconds so far, which count for one
        more interval at most.
        """
        if not self.needs:
            return None
        need = min(self.needs)
        since = min(max(0.0, attained - self.work), need * self.advance)
        return max(0.0, min(need * (total - newest), need * (total - self.position) - since))
