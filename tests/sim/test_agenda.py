"""Events in order of time."""

from __future__ import annotations

from dltools.sim.agenda import Agenda, Arrival, Observation, Wake
from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.workload import HostSpec, Job


def test_events_come_in_order_of_time_and_those_of_one_time_as_they_were_added() -> None:
    agenda = Agenda()
    for name, time in (("c", 5.0), ("a", 1.0), ("d", 5.0), ("b", 2.0)):
        agenda.add(time, Arrival(Job(name)))
    assert agenda.next_time == 1.0
    found = [agenda.pop() for _ in range(4)]
    assert [(time, event.job.name) for time, event in found] == [  # type: ignore[union-attr]
        (1.0, "a"), (2.0, "b"), (5.0, "c"), (5.0, "d"),
    ]  # fmt: skip
    assert agenda.next_time is None


def test_observations_are_no_work() -> None:
    agenda, host = Agenda(), SimulatedHost(HostSpec("h", 1.0))
    agenda.add(0.0, Observation(host))
    assert not agenda.has_work()
    agenda.add(1.0, Wake(host, 0))
    assert agenda.has_work()
