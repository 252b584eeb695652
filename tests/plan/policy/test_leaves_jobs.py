"""A policy changes nothing of the jobs that it sees, though they are no copies. Only `refit`, which
the interface has it call, keeps the fits of learning curves with them."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.simulations import simulation

from dltools.plan.policy import registry
from dltools.plan.policy.interface import Cluster, Decision, Policy, State
from dltools.sim.generate import trainings
from dltools.sim.workload import HostSpec, workload_of


def seen(cluster: Cluster) -> Cluster:
    copy = deepcopy(cluster)
    for job in (job for host in copy.hosts.values() for job in host.jobs):
        for series in job.progress.metrics.values():
            series.curve, series.fitted = None, 0
    return copy


@dataclass
class Watched:
    """A policy, and in how many rounds it has changed nothing."""

    policy: Policy
    rounds: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        before = seen(cluster)
        decision = self.policy.decide(cluster, parameters, state)
        assert seen(cluster) == before
        self.rounds += 1
        return decision


@pytest.mark.parametrize("name", sorted({*registry.policies([])} - {"noop"}))  # never asked here
def test_a_policy_leaves_jobs_as_they_are(name, monkeypatch) -> None:
    watched = Watched(registry.get(name, []))
    monkeypatch.setattr(registry, "get", lambda *_: watched)
    hosts = HostSpec("a", 2.0), HostSpec("b", 2.0)
    simulation(workload_of(trainings(4, "burst", 5.0, 1), hosts, "test"), name).run(200.0)
    assert watched.rounds > 3
