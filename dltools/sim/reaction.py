"""When the policy looks at a host, and how soon settings follow what it sees.

`Reaction` models the time that dl-probe, dl-plan and dl-apply need to see and to act.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dltools.notation.times import MICRO
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.signals.container_history import JITTER

DELAY_S = 0.1
"""Seconds from a sample, or from the start or exit of a container, until settings are in force:
dl-probe, dl-plan and dl-apply together (measured, Docker 20.10 on two busy CPUs: 0.03 to 0.14)."""

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Reaction:
    """How soon dl-probe, dl-plan and dl-apply react. Starts and exits are always seen at once."""

    interval_s: float = 0.0
    """Seconds between two samples; reports and ends of turns are seen at the next sample, or at
    once if it is 0."""

    delay_s: float = 0.0
    """Seconds from seeing a change until settings are in force."""

    def to_event(self, time: float) -> float:
        """Return when settings follow the start or exit of a container at a time (s)."""
        return time + self.delay_s

    def to_report(self, time: float) -> float:
        """Return when settings follow what a job reported at a time (s)."""
        if self.interval_s <= 0 or not math.isfinite(time):
            return time + self.delay_s
        number = math.ceil(time / self.interval_s - _EPSILON)
        return number * self.interval_s + self.delay_s

    def to_due_time(self, time: float) -> float:
        """Return when settings follow a turn of the queue that is due at a time (s).

        Due times are counted from the time when settings were in force, so they include the delay.
        """
        return max(time, self.to_report(time - self.delay_s))

    def to_interval(self, last: float, interval_s: float) -> float:
        """Return when the next round follows the last one (s), with `interval_s` between them."""
        if self.interval_s <= 0:
            return last + interval_s
        return self.to_due_time(last + interval_s * (1 - JITTER))


AT_ONCE = Reaction()
"""Everything is seen and acted on at once."""

LEAST_STEP = 1e-6
"""Seconds; an event that is sooner than the clock can tell would never come."""

_AGAIN_S = (2.0, 5.0, 12.0)
"""Seconds after a change at which the policy looks again. By then it has three samples, it has seen
whether CPUs stay idle, and jobs that fell asleep count as idle."""


class Looks:
    """The looks of the policy at a host. Times are in seconds.

    `due`: when a round may be due. `in_force_at`: when settings follow the first start or exit
    since the last look. `again`: further times to look, because the shares or demands of jobs have
    changed.
    """

    def __init__(self, reaction: Reaction) -> None:
        self.due = self.in_force_at = math.inf
        self.again: list[float] = []
        self._reaction = reaction

    def note_change(self, now: float) -> None:
        """Note that a job has just started or ended."""
        self.in_force_at = min(self.in_force_at, self._reaction.to_event(now))
        self.due = min(self.due, self.in_force_at)

    def note_new_portions(self, now: float) -> None:
        """Note that shares or demands have just changed."""
        self.again = [now + seconds for seconds in _AGAIN_S]

    def begin(self, now: float) -> bool:
        """Begin a look; tell whether it is one of those that follow changed shares or demands."""
        self.in_force_at = math.inf
        is_again = bool(self.again) and now >= self.again[0]
        if is_again:
            self.again = [time for time in self.again if time > now]
        return is_again

    def plan(self, now: float, history: HostHistory, news: float) -> None:
        """Say when the next look is due. `news`: when a job makes a report that a round is due
        for."""
        self.due = max(now + LEAST_STEP, self._next(history, news))

    def _next(self, history: HostHistory, news: float) -> float:
        if not history.containers:
            return self.in_force_at
        timer, reaction = history.timer, self._reaction
        time = min(self.in_force_at, reaction.to_report(news))
        if self.again:
            time = min(time, reaction.to_report(self.again[0]))
        if timer.interval_s is not None and timer.last is not None and timer.run_ids:
            time = min(time, reaction.to_interval(timer.last / MICRO, timer.interval_s))
        due = history.queue.due
        if due:  # 0 means the change of which in_force_at has the time
            time = min(time, reaction.to_due_time(due / MICRO))
        return time
