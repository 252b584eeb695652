"""When a policy runs: every interval, at once when a job arrives or leaves, less often when idle.

This is FlowCon's pair of listeners and its exponential back-off, kept as data, for every policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dltools.notation.times import MICRO
from dltools.plan.policy.base import IntervalChange, Requirements
from dltools.plan.policy.container_history import JITTER, ContainerHistory


@dataclass(frozen=True, slots=True)
class RoundTimer:
    """The interval in force (seconds; None: no rounds by time), when the last round ran
    (microseconds; None: one is due), and with which jobs."""

    interval_s: float | None
    last: int | None = None
    run_ids: tuple[str, ...] = ()

    def is_due(self, now: int) -> bool:
        """Tell whether the interval has passed, but for the samplers' jitter."""
        if self.last is None or self.interval_s is None:
            return self.last is None
        return now - self.last >= round(self.interval_s * MICRO * (1 - JITTER))

    def with_jobs(self, jobs: Iterable[ContainerHistory], requirements: Requirements) -> RoundTimer:
        """Return the timer for these jobs.

        Where one has arrived or left, the interval is reset and a round is due.
        """
        run_ids = tuple(sorted(job.run_id for job in jobs))
        if run_ids == self.run_ids:
            return self
        return RoundTimer(requirements.interval_s, None, run_ids)

    def interrupted(self) -> RoundTimer:
        """Return the timer with a round due at once."""
        return replace(self, last=None)

    def after_round(
        self, now: int, change: IntervalChange, requirements: Requirements
    ) -> RoundTimer:
        """Return the timer after a round at `now`, the interval kept, doubled or reset."""
        interval_s = self.interval_s
        if change is IntervalChange.RESET:
            interval_s = requirements.interval_s
        elif change is IntervalChange.DOUBLE and interval_s is not None:
            interval_s = min(2 * interval_s, max(interval_s, requirements.longest_interval_s))
        return RoundTimer(interval_s, now, self.run_ids)

    def wait_s(self, now: int) -> float | None:
        """Return the seconds from `now` until the next round; None where time brings none."""
        if self.last is None or self.interval_s is None:
            return self.interval_s
        return max(0.0, (self.last - now) / MICRO + self.interval_s)
