"""A policy of your own: the newest job goes first, so that debugging runs start fast."""

from dataclasses import dataclass

from dltools.plan.policy.interface import Allocation, Cluster, Decision, Requirements, State
from dltools.plan.policy.parameters import parameter
from dltools.plan.policy.shares import queue_shares


@dataclass(frozen=True)
class Parameters:
    floor: float = parameter(0.1, "least share of a job (of 1/n)", high=1.0, source="ours")


class Newest:
    name = "newest"
    help = "the newest job first"
    parameters = Parameters

    def requirements(self, parameters: Parameters) -> Requirements:
        # Requirements(30.0) would add a round every 30 s.
        return Requirements()  # decide when a job arrives or leaves

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        host = cluster.host
        order = sorted(host.jobs, key=lambda job: (-job.arrived, job.name))
        shares = queue_shares(order, host.cpus, parameters.floor / max(1, len(order)))
        return Decision({job.id: Allocation(shares[job.id], "-", "newest first") for job in order})


NEWEST = Newest()
