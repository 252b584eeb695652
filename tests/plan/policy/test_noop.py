"""The policy that changes nothing."""

from helpers.histories import history

from dltools.plan.policy.baselines import NOOP
from dltools.plan.policy.interface import Allocation, Cluster, HostState


def test_every_job_is_left_alone() -> None:
    jobs = tuple(history(name=name) for name in "ab")
    cluster = Cluster(0, "h", {"h": HostState("h", 2.0, jobs)})
    decision = NOOP.decide(cluster, NOOP.parameters(), {})
    assert set(decision.allocations) == {job.id for job in jobs}
    assert set(decision.allocations.values()) == {Allocation(None, "-", "left alone")}
    assert not NOOP.requirements(NOOP.parameters()).shares
