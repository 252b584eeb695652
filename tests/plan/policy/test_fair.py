"""Equal shares, worked by hand."""

from helpers.histories import history

from dltools.plan.policy.baselines import FAIR
from dltools.plan.policy.interface import Cluster, HostState, Requirements


def test_each_of_n_jobs_gets_an_equal_share() -> None:
    jobs = tuple(history(name=name) for name in "abcd")
    cluster = Cluster(0, "h", {"h": HostState("h", 2.0, jobs)})
    decision = FAIR.decide(cluster, FAIR.parameters(), {"kept": 1})
    found = {key: (one.share, one.reason) for key, one in decision.allocations.items()}
    assert found == {job.id: (0.25, "equal share of 4") for job in jobs}
    assert decision.state == {"kept": 1}


def test_rounds_run_only_when_a_job_arrives_or_leaves() -> None:
    assert FAIR.requirements(FAIR.parameters()) == Requirements(users=True)
