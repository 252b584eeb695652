"""One round: look at a host, ask the policy, turn its allocations into settings.

The planner drives rounds over recordings and live streams, the simulator in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dltools.plan.host_history import HostHistory, Jobs
from dltools.plan.policy.base import Cluster, Policy, Requirements, State
from dltools.plan.realisation.base import Realisation
from dltools.plan.realisation.mode import RealisationOptions, choose_mode
from dltools.plan.realisation.realise import realise

OtherHosts = Callable[[], Iterable[HostHistory]]
"""Returns the histories of all hosts, brought up to date; called where a policy looks at them.
Among equal hosts a policy may take the first."""


class Rounds:
    """The rounds of one policy on any number of hosts."""

    def __init__(
        self, policy: Policy, parameters: Any, options: RealisationOptions, memory: State
    ) -> None:
        """`memory` is what the policy has remembered so far, {} at first."""
        self.policy = policy
        self.parameters = parameters
        self.options = options
        self.memory = memory
        self.requirements: Requirements = policy.requirements(parameters)

    def run(
        self, host: HostHistory, all_hosts: OtherHosts, *, target_met: bool
    ) -> Realisation | None:
        """Run a round on a host that has just been sampled, if one is due.

        Return the settings that now hold, None where neither a round nor a turn of the queue was
        due. The history keeps the allocations, the actions and the queue.
        """
        jobs = host.start_round(self.requirements, target_met=target_met)
        if jobs:
            self._decide(host, jobs, all_hosts)
        elif not host.queue.is_due(host.sampled_at or 0):
            return None
        found = self.realise(host)
        host.queue = found.queue
        return found

    def realise(self, host: HostHistory) -> Realisation:
        """Return the settings of a host's containers at its newest sample."""
        state = host.state()
        return realise(
            choose_mode(self.options, state), state, host.cpuset, host.without_progress(),
            host.queue, host.sampled_at or 0,
        )  # fmt: skip

    def _decide(self, host: HostHistory, jobs: Jobs, all_hosts: OtherHosts) -> None:
        states = {host.name: host.state(jobs)}
        if self.requirements.cluster:
            states = {other.name: other.state() for other in all_hosts()}
        interval_s = host.timer.interval_s or 0.0
        cluster = Cluster(host.sampled_at or 0, host.name, states, interval_s)
        decision = self.policy.decide(cluster, self.parameters, self.memory)
        host.finish_round(decision, self.requirements, jobs)
        self.memory = decision.state
