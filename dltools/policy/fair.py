"""Equal shares for all jobs of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dltools.policy.base import Cluster, Decision, Grant, State


@dataclass(frozen=True, slots=True)
class Parameters:
    """No parameters."""


class Fair:
    """Each of n jobs gets 1/n of its node."""

    name = "fair"
    help = "equal shares: each of n jobs gets 1/n of its node"
    parameters = Parameters

    def horizon_s(self, parameters: Any, state: State) -> float:  # noqa: ARG002
        """It looks at no history."""
        return 0.0

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:  # noqa: ARG002
        """Share the node equally."""
        jobs = cluster.nodes[cluster.ticked].jobs
        reason = f"equal share of {len(jobs)}"
        return Decision({job.id: Grant(1 / len(jobs), "-", reason) for job in jobs}, state)


FAIR = Fair()
