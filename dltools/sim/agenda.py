"""The events of a simulation in order of time, and the delay until settings follow an event.

The simulation takes its next event from the agenda. `Reaction` models the time that dl-probe,
dl-plan and dl-apply need to see and to act.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

from dltools.plan.signals.container_history import JITTER
from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.workload import Job


class Arrival(NamedTuple):
    """A job arrives, or gets room after waiting."""

    job: Job


class Landing(NamedTuple):
    """A job continues on the host that it has migrated to."""

    job: SimulatedJob
    host: SimulatedHost


class Wake(NamedTuple):
    """A change on a host is due: a job starts up, reports, ends, or a round is due. The event is
    out of date if the host's version differs from this one."""

    host: SimulatedHost
    version: int


class Observation(NamedTuple):
    """The observer samples a host."""

    host: SimulatedHost


Event = Arrival | Landing | Wake | Observation


class Agenda:
    """The events to come. Events of one time stay in the order in which they were added."""

    def __init__(self) -> None:
        self._events: list[tuple[float, int, Event]] = []
        self._added = 0

    def add(self, time: float, event: Event) -> None:
        """Add an event at a time in seconds."""
        self._added += 1
        heapq.heappush(self._events, (time, self._added, event))

    @property
    def next_time(self) -> float | None:
        """The time of the next event (s), None without one."""
        return self._events[0][0] if self._events else None

    def pop(self) -> tuple[float, Event]:
        """Remove the next event; return its time (s) and the event."""
        time, _, event = heapq.heappop(self._events)
        return time, event

    def has_work(self) -> bool:
        """Tell whether events other than observations are left."""
        return any(not isinstance(event, Observation) for *_, event in self._events)


DELAY_S = 0.1
"""Seconds from a sample, or from the start or exit of a container, until settings are in force:
dl-probe, dl-plan and dl-apply together (measured, Docker 20.10 on two busy CPUs: 0.03 to 0.14)."""

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Reaction:
    """How soon dl-probe, dl-plan and dl-apply react.

    `interval_s`: seconds between two samples; reports and ends of turns are seen at the next
    sample, or at once if it is 0. Starts and exits are always seen at once. `delay_s`: seconds from
    seeing a change until settings are in force.
    """

    interval_s: float = 0.0
    delay_s: float = 0.0

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
