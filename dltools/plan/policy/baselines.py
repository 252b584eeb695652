"""The policies that others are compared with: none, and equal shares."""

from __future__ import annotations

from typing import Any

from dltools.plan.policy.by_user import are_of_one_user, by_user, user_shares
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


class Fair:
    """Each of n jobs gets 1/n of its host; where they are of several users, each user the same."""

    name = "fair"
    help = "equal shares: each of n jobs gets 1/n of its host, or of its user's share"
    parameters = NoParameters

    def requirements(self, parameters: Any) -> Requirements:  # noqa: ARG002
        """Nothing: it decides when a job arrives or leaves."""
        return Requirements(users=True)

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:  # noqa: ARG002
        """Share the host equally."""
        jobs = cluster.host.jobs
        if are_of_one_user(jobs):
            allocation = Allocation(1 / max(1, len(jobs)), "-", f"equal share of {len(jobs)}")
            return Decision({job.id: allocation for job in jobs}, state, gain="none: equal shares")
        shares = user_shares(jobs, {job.id: 1.0 for job in jobs})
        allocations = {}
        for user, own in by_user(jobs).items():
            whose = f"of user {user}" if user else "of no user"
            part = f"equal share of {len(by_user(jobs))} users, of {len(own)} jobs {whose}"
            for job in own:
                note = part if job.priority == 1 else f"{part} by priority {job.priority:g}"
                allocations[job.id] = Allocation(shares[job.id], "-", note)
        return Decision(allocations, state, gain="none: equal shares")


FAIR = Fair()
