"""No policy: Docker's free competition, the baseline that the papers call NA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dltools.plan.policy.base import Cluster, Decision, Grant, Needs, State


@dataclass(frozen=True, slots=True)
class Parameters:
    """No parameters."""


class Noop:
    """Observe only: every job keeps what it has."""

    name = "noop"
    help = "change nothing: Docker's free competition, the papers' baseline NA"
    parameters = Parameters

    def needs(self, parameters: Any) -> Needs:  # noqa: ARG002
        """Nothing."""
        return Needs()

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:  # noqa: ARG002
        """Leave every job as it is."""
        grant = Grant(None, "-", "left alone")
        return Decision({job.id: grant for job in cluster.node.jobs}, state, gain="none")


NOOP = Noop()
