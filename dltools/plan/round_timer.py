"""When a policy runs: every interval, at once when a job arrives or leaves, less often when idle.

This is FlowCon's pair of listeners and its exponential back-off, kept as data, for every policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dltools.plan.policy.base import IntervalChange, Requirements
from dltools.plan.policy.container_history import JITTER, MICRO, ContainerHistory


@dataclass(frozen=True, slots=True)
class RoundTimer:
    """The interval in force (seconds; None: no rounds by time), when the last round ran
    (microseconds; None: one is due), and for whom."""

    interval_s: float | None
    last: int | None = None
    run_ids: tuple[str, ...] = ()

    def due(self, now: int) -> bool:
        """Tell whether the interval has passed, but for the samplers' jitter."""
        if self.last is None or self.interval_s is None:
            return self.last is None
        return now - self.last >= round(self.interval_s * MICRO * (1 - JITTER))

    def listen(self, jobs: Iterable[ContainerHistory], requirements: Requirements) -> RoundTimer:
        """Return the rounds for these jobs.

        Where one has arrived or left, the interval is reset and a round is due.
        """
        run_ids = tuple(sorted(job.run_id for job in jobs))
        return (
            self if run_ids == self.run_ids else RoundTimer(requirements.interval_s, None, run_ids)
        )

    def interrupted(self) -> RoundTimer:
        """Return the rounds with one due at once."""
        return replace(self, last=None)

    def ran(
        self, now: int, interval_change: IntervalChange, requirements: Requirements
    ) -> RoundTimer:
        """Return the rounds after one at `now`, the interval kept, doubled or reset."""
        itval = self.interval_s
        if interval_change is IntervalChange.RESET:
            itval = requirements.interval_s
        elif interval_change is IntervalChange.DOUBLE and itval is not None:
            itval = min(2 * itval, max(itval, requirements.longest_interval_s))
        return RoundTimer(itval, now, self.run_ids)

    def wait_s(self, now: int) -> float | None:
        """Return the seconds from `now` until the next round; None where time brings none."""
        if self.last is None or self.interval_s is None:
            return self.interval_s
        return max(0.0, (self.last - now) / MICRO + self.interval_s)

    def to_json(self) -> list[Any]:
        """Return JSON values from which `from_json` restores the rounds."""
        return [self.interval_s, self.last, list(self.run_ids)]


def from_json(data: Any) -> RoundTimer:
    """Return the rounds that were saved. Raises TypeError or ValueError."""
    itval, last, run_ids = data
    return RoundTimer(itval if itval is None else float(itval), last, tuple(run_ids))


def by_run_id(saved: Mapping[str, Any], jobs: Iterable[ContainerHistory]) -> dict[str, Any]:
    """Return what a policy has saved by member, of these jobs alone."""
    return {key: saved[key] for job in jobs if (key := job.run_id) in saved}
