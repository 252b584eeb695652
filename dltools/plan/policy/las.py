"""Least attained service: the job that has had the least CPU goes first.

Gu et al.: Tiresias: A GPU Cluster Manager for Distributed Deep Learning, NSDI 2019, the discretised
form: a job's attained service decides in which of a few queues it is. Tiresias counts GPU seconds,
and serves a queue in order of arrival. Here the service of a job is its GPU seconds if it uses a
GPU, else its CPU seconds. The bounds of the queues are ours. So is the order within a queue: least
attained service first, so that equal jobs take turns.
"""

from __future__ import annotations

from dataclasses import dataclass

from dltools.plan.policy.interface import (
    Allocation,
    Cluster,
    Decision,
    JobClass,
    Requirements,
    State,
)
from dltools.plan.policy.parameters import parameter, seconds
from dltools.plan.policy.shares import queue_shares

_MOST_QUEUES = 20

CLASSES = tuple(
    JobClass(f"Q{number}", f"queue {number}", "jobs of a lower queue go first")
    for number in range(1, _MOST_QUEUES + 1)
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Least attained service's parameters."""

    itval: float = seconds(30.0, "seconds between two rounds")
    queue: float = parameter(
        60.0, "CPU seconds that end a job's time in the first queue", low=0.001
    )
    factor: float = parameter(
        10.0, "how many times as long each further queue is", low=1.1, high=1e6
    )
    queues: float = parameter(3.0, "number of queues", low=1.0, high=float(_MOST_QUEUES))
    floor: float = parameter(0.02, "least share of a waiting job (of 1/n)", low=0.001, high=1.0)


class Las:
    """The policy object; it holds no state of its own."""

    name = "las"
    help = "least attained service first (like Tiresias, NSDI 2019)"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """A round each interval."""
        return Requirements(parameters.itval, efforts=True)

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Sort the jobs by queue, then by attained service."""
        host = cluster.host
        queues = {job.id: queue(job.use.effort, parameters) for job in host.jobs}
        order = sorted(
            host.jobs, key=lambda j: (queues[j.id], j.use.effort, j.arrived, j.name, j.id)
        )
        shares = queue_shares(order, host.cpus, parameters.floor / max(1, len(order)))
        allocations = {}
        for number, job in enumerate(order, 1):
            signal = f"{job.use.effort:.3g} {job.use.effort_unit} attained"
            reason = f"queue {queues[job.id]}, {number} of {len(order)}: {signal}"
            allocations[job.id] = Allocation(shares[job.id], f"Q{queues[job.id]}", reason, signal)
        gain = f"{order[0].name} has had the least CPU and goes first" if order else "none: no job"
        return Decision(allocations, state, gain=gain)


LAS = Las()


def queue(attained: float, parameters: Parameters) -> int:
    """Return the number of the queue, from 1, of a job that has had this effort."""
    number, border = 1, parameters.queue
    while attained >= border and number < int(parameters.queues):
        number += 1
        border *= parameters.factor
    return number
