"""How soon what happens on a host is seen, and acted on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dltools.plan.signals.container_history import JITTER

DELAY_S = 0.1
"""From the start or exit of a container, or from a sample, to settings in force: dl-probe, dl-plan
and dl-apply together (measured, Docker 20.10 on two busy CPUs: 0.03 to 0.14 s)."""

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Reaction:
    """What dl-probe, dl-plan and dl-apply take to react.

    `interval_s`: seconds between two samples, in which reports and the ends of turns are seen; 0
    where they are seen at once. Starts and exits are always seen at once. `delay_s`: seconds from
    then until settings are in force.
    """

    interval_s: float = 0.0
    delay_s: float = 0.0

    def to_event(self, time: float) -> float:
        """Return when settings follow the start or exit of a container (s)."""
        return time + self.delay_s

    def to_report(self, time: float) -> float:
        """Return when settings follow what a job reported at a time (s)."""
        if self.interval_s <= 0 or not math.isfinite(time):
            return time + self.delay_s
        number = math.ceil(time / self.interval_s - _EPSILON)
        return number * self.interval_s + self.delay_s

    def to_due_time(self, time: float) -> float:
        """Return when settings follow a turn of the queue that is due at a time (s).

        Times that are due have been counted from settings in force, with the delay in them.
        """
        return max(time, self.to_report(time - self.delay_s))

    def to_interval(self, last: float, interval_s: float) -> float:
        """Return when the round follows that is due an interval after the last one (s)."""
        if self.interval_s <= 0:
            return last + interval_s
        return self.to_due_time(last + interval_s * (1 - JITTER))


AT_ONCE = Reaction()
"""All is seen and acted on at once."""
