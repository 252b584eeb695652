"""What is going to happen in a simulation, in order of time."""

from __future__ import annotations

import heapq
from typing import NamedTuple

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
        """Nothing is going to happen."""
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
