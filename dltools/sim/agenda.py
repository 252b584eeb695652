"""When things happen in a simulation: the events to come, and how soon settings follow them.

The simulation takes one event after the other from the agenda. `Reaction` stands for dl-probe,
dl-plan and dl-apply, which need time to see and to act.
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
    """A job arrives, or has waited for room."""

    job: Job


class Landing(NamedTuple):
    """A job that has migrated goes on."""

    job: SimulatedJob
    host: SimulatedHost


class Wake(NamedTuple):
    """Something happens on a host by itself; out of date where its version is another."""

    host: SimulatedHost
    version: int


class Observation(NamedTuple):
    """The observer looks at a host."""

    host: SimulatedHost


Event = Arrival | Landing | Wake | Observation


class Agenda:
    """The events to come; those of one time in the order in which they were added."""

    def __init__(self) -> None:
        self._events: list[tuple[float, int, Event]] = []
        self._added = 0

    def add(self, time: float, event: Event) -> None:
        """Add an event at a time in seconds."""
        self._added += 1
        heapq.heappush(self._events, (time, self._added, event))

    @property
    def next_time(self) -> float | None:
        """When the next event is, None where there is none."""
        return self._events[0][0] if self._events else None

    def pop(self) -> tuple[float, Event]:
        """Take away the next event, and return its time and what it is."""
        time, _, event = heapq.heappop(self._events)
        return time, event

    def has_work(self) -> bool:
        """Tell whether more is to come than observations."""
        return any(not isinstance(event, Observation) for *_, event in self._events)


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
