"""No policy: Docker's free competition, the baseline that the papers call NA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dltools.policy.base import Cluster, Decision, Grant, State


@dataclass(frozen=True, slots=True)
class Parameters:
    """No parameters."""


class Noop:
    """Observe only: every job keeps what it has."""

    name = "noop"
    help = "change nothing: Docker's free competition, the papers' baseline NA"
    parameters = Parameters

    def horizon_s(self, parameters: Any, state: State) -> float:  # noqa: ARG002
        """It looks at no history."""
        return 0.0

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:  # noqa: ARG002
        """Leave every job as it is."""
        jobs = cluster.nodes[cluster.ticked].jobs
        return Decision({job.id: Grant(None, "-", "left alone") for job in jobs}, state)


NOOP = Noop()
