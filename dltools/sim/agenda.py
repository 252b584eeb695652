"""The events of a simulation in order of time, from which it takes the next one."""

from __future__ import annotations

import heapq
from typing import NamedTuple

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
