"""Equal shares for all jobs of a host. It stands alone, as each policy does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dltools.plan.policy.interface import Allocation, Cluster, Decision, Requirements, State


@dataclass(frozen=True, slots=True)
class Parameters:
    """No parameters."""


class Fair:
    """Each of n jobs gets 1/n of its host."""

    name = "fair"
    help = "equal shares: each of n jobs gets 1/n of its host"
    parameters = Parameters

    def requirements(self, parameters: Any) -> Requirements:  # noqa: ARG002
        """Nothing: it decides when a job arrives or leaves."""
        return Requirements()

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:  # noqa: ARG002
        """Share the host equally."""
        jobs = cluster.host.jobs
        allocation = Allocation(1 / max(1, len(jobs)), "-", f"equal share of {len(jobs)}")
        return Decision({job.id: allocation for job in jobs}, state, gain="none: equal shares")


FAIR = Fair()
