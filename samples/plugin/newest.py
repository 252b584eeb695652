"""A policy of one's own: the newest job goes first, so that debugging runs start fast."""

from dataclasses import dataclass

from dltools.plan.policy.base import Cluster, Decision, Grant, Needs, State
from dltools.plan.policy.parameters import parameter
from dltools.plan.policy.shares import in_line


@dataclass(frozen=True)
class Parameters:
    floor: float = parameter(0.1, "least share of a job (of 1/n)", high=1.0, source="ours")


class Newest:
    name = "newest"
    help = "the newest job first"
    parameters = Parameters

    def needs(self, parameters: Parameters) -> Needs:
        return Needs()  # decide when a job arrives or leaves; Needs(30.0) adds a round each 30 s

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        node = cluster.node
        order = sorted(node.jobs, key=lambda job: (-job.arrived, job.name))
        shares = in_line(order, node.cpus, parameters.floor / max(1, len(order)))
        return Decision({job.id: Grant(shares[job.id], "-", "newest first") for job in order})


NEWEST = Newest()
