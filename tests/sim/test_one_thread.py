"""Trainings of one thread each are no worse off under any policy than under Docker alone."""

from dataclasses import replace

import pytest
from helpers.examples import examples, some_of
from helpers.simulations import simulation
from hypothesis import given
from hypothesis import strategies as st

from dltools.sim.workload import HostSpec, Job, LearningCurve, workload_of

JOBS = st.builds(
    Job,
    name=st.just(""),
    arrival=st.floats(0, 60),
    work=st.floats(5, 120),
    threads=st.just(1),
    epochs=st.integers(1, 60),
    curve=st.builds(LearningCurve, rate=st.floats(2, 60)),
    startup=st.sampled_from([0.0, 2.0]),
)


def times(policy: str, jobs: list[Job], cpus: float) -> tuple[float, float]:
    named = [replace(job, name=f"j{number}") for number, job in enumerate(jobs)]
    workload = workload_of(tuple(named), (HostSpec("node", cpus),), "test")
    results = simulation(workload, policy).run()
    ends = [result.finish or 0.0 for result in results]
    mean = sum(end - result.arrival for end, result in zip(ends, results, strict=True)) / len(ends)
    return mean, max(ends) - min(result.arrival for result in results)


@examples(40)
@given(jobs=st.lists(JOBS, min_size=2, max_size=8), cpus=st.sampled_from([1.0, 2.0, 4.0]))
@pytest.mark.parametrize("policy", some_of(["flowcon", "srtf", "fair", "las", "slaq", "tradl"], 3))
def test_no_policy_is_worse_than_docker_alone(policy, jobs, cpus) -> None:
    mean, makespan = times(policy, jobs, cpus)
    mean_alone, makespan_alone = times("noop", jobs, cpus)
    # A new job is taken for a short one until its log has said how long it is; a turn is 5 s.
    assert mean <= 1.15 * mean_alone + 2.0
    assert makespan <= 1.15 * makespan_alone
