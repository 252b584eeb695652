"""No policy: Docker's free competition, the baseline that the papers call NA.

It stands alone, as each policy does.
"""

from __future__ import annotations

from typing import Any

from dltools.plan.policy.interface import Allocation, Cluster, Decision, Requirements, State
from dltools.plan.policy.parameters import NoParameters


class Noop:
    """Observe only: every job keeps what it has."""

    name = "noop"
    help = "change nothing: Docker's free competition, the papers' baseline NA"
    parameters = NoParameters

    def requirements(self, parameters: Any) -> Requirements:  # noqa: ARG002
        """Nothing."""
        return Requirements(shares=False, silent_jobs=False)

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:  # noqa: ARG002
        """Leave every job as it is."""
        allocation = Allocation(None, "-", "left alone")
        return Decision({job.id: allocation for job in cluster.host.jobs}, state, gain="none")


NOOP = Noop()
