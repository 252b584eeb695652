"""Where jobs go that arrive."""

from __future__ import annotations

from dltools.observations.outcomes import JobResult
from dltools.plan.signals.container_history import ContainerHistory
from dltools.sim.placement import Placement
from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.workload import HostSpec, Job


def job(name: str, host: SimulatedHost, memory: int = 0) -> SimulatedJob:
    history = ContainerHistory(name, name, host.spec.name, 0)
    return SimulatedJob(Job(name, memory=memory), history, JobResult(name, host.spec.name, 0.0))


def placed(placement: Placement, name: str, memory: int = 0) -> str:
    host = placement.host_for(Job(name, memory=memory))
    if host is None:
        return ""
    host.add(job(name, host, memory))
    placement.note_change(host)
    return host.spec.name


def test_a_job_goes_to_the_host_with_the_fewest_jobs() -> None:
    hosts = [SimulatedHost(HostSpec(name, 2.0)) for name in "ab"]
    placement = Placement(hosts)
    assert [placed(placement, str(number)) for number in range(4)] == ["a", "b", "a", "b"]
    hosts[1].remove(hosts[1].jobs["1"])
    placement.note_change(hosts[1])
    assert [placed(placement, str(number)) for number in range(4, 6)] == ["b", "a"]


def test_a_job_goes_to_its_own_host_if_that_has_room() -> None:
    hosts = [SimulatedHost(HostSpec(name, 2.0, memory=4)) for name in "ab"]
    placement, asked = Placement(hosts), Job("first", memory=4, node="b")
    assert placement.host_for(asked) is hosts[1]
    hosts[1].reserve(asked)
    assert placement.host_for(asked) is None


def test_a_job_goes_where_it_has_room_or_nowhere() -> None:
    placement = Placement([SimulatedHost(HostSpec("small", 2.0, memory=4)),
                           SimulatedHost(HostSpec("large", 2.0, memory=10))])  # fmt: skip
    found = [placed(placement, str(number), memory=4) for number in range(4)]
    assert found == ["small", "large", "large", ""]
    assert placed(placement, "free") == "small"
