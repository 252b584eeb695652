"""Shares a host among users first, then among the jobs of each user.

Every user gets the same part of the host, however many jobs they run. Within that part, a job gets
in proportion to its share by the policy times its priority. All jobs without a user count as jobs
of one user. A policy that compares efforts is asked once for each user, with this user's jobs on a
host of this user's part. Any other policy is asked once for all jobs, and its shares are scaled.
The rule is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dltools.plan.policy.by_resource import decide_apart
from dltools.plan.policy.interface import Allocation, Cluster, Decision, Policy, Requirements, State
from dltools.plan.signals.job import Job


def by_user(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Return the jobs of each user, by name."""
    users: dict[str, list[Job]] = {}
    for job in jobs:
        users.setdefault(job.user, []).append(job)
    return dict(sorted(users.items()))


def are_of_one_user(jobs: Sequence[Job]) -> bool:
    """Tell whether all jobs belong to one user and have the same priority."""
    return len({(job.user, job.priority) for job in jobs}) < 2


def user_shares(jobs: Sequence[Job], shares: Mapping[str, float]) -> dict[str, float]:
    """Return shares that sum to 1. Each user gets the same; a user's jobs get in proportion to
    share times priority."""
    users = by_user(job for job in jobs if job.id in shares)
    scaled: dict[str, float] = {}
    for own in users.values():
        amounts = {job.id: shares[job.id] * job.priority for job in own}
        total = math.fsum(amounts.values()) * len(users)
        scaled |= {key: amount / total for key, amount in amounts.items()}
    return scaled


class FairAmongUsers:
    """A policy whose decisions give each user the same part of the host."""

    def __init__(self, policy: Policy) -> None:
        """Take name, help and parameters from the policy that decides within a user's part."""
        self._policy = policy
        self.name, self.help, self.parameters = policy.name, policy.help, policy.parameters

    def requirements(self, parameters: Any) -> Requirements:
        """Return what the policy requires."""
        return self._policy.requirements(parameters)

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        """Decide a round. Jobs of one user and one priority get what the policy decides."""
        jobs = cluster.host.jobs
        if are_of_one_user(jobs):
            return self._policy.decide(cluster, parameters, state)
        if self.requirements(parameters).efforts:
            decision = self._decide_per_user(cluster, parameters, state)
        else:
            decision = self._policy.decide(cluster, parameters, state)
        return replace(decision, allocations=_shared(jobs, decision.allocations))

    def _decide_per_user(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        """Ask the policy once for each user, with this user's part of the host."""
        host, users = cluster.host, by_user(cluster.host.jobs)
        parts = [host.part(host.cpus / len(users), own) for own in users.values()]
        decision = decide_apart(self._policy, cluster, parameters, state, parts)
        if len(users) == 1:
            return decision
        return replace(decision, gain=f"equal parts for {len(users)} users")


def _shared(jobs: Sequence[Job], allocations: Mapping[str, Allocation]) -> dict[str, Allocation]:
    shared = {job.id: allocations[job.id] for job in jobs if job.id in allocations}
    given = {key: old.share for key, old in shared.items() if old.share is not None}
    shares = user_shares(jobs, given)
    users = by_user(job for job in jobs if job.id in given)
    for user, own in users.items():
        whose = f"user {user}" if user else "jobs of no user"
        for job in own:
            reason = f"{shared[job.id].reason}; {whose}: {1 / len(users):.3g} of the host"
            new = replace(shared[job.id], share=shares[job.id], reason=reason, unlimited=False)
            shared[job.id] = new
    return shared
