"""Bounds: worked by hand, and held by every policy."""

import math

import pytest
from helpers.examples import examples
from helpers.simulations import simulation
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.outcomes import summarise
from dltools.plan.policy import registry
from dltools.plan.realisation.options import Mode
from dltools.sim import lower_bound
from dltools.sim.generate import trainings
from dltools.sim.workload import HostSpec, Job, workload_of

ONE = (HostSpec("n", 1.0),)


def test_shortest_remaining_time_first_by_hand() -> None:
    # a of 5 from 0; b of 1 from 1 goes before it: b ends at 2, a at 6. c of 2 from 10 ends at 12.
    jobs = [Job("a", work=5.0), Job("b", 1.0, work=1.0), Job("c", 10.0, work=2.0)]
    found = workload_of(jobs, ONE, "x")
    assert lower_bound.mean_completion(found) == pytest.approx((6 + 1 + 2) / 3)
    assert lower_bound.makespan(found) == pytest.approx(12.0)


def test_no_job_is_faster_than_its_threads() -> None:
    found = workload_of([Job("a", work=8.0), Job("b", work=8.0)], (HostSpec("n", 8.0),), "x")
    assert lower_bound.mean_completion(found) == pytest.approx(8.0)
    assert lower_bound.makespan(found) == pytest.approx(8.0)
    assert lower_bound.seconds_alone(found.jobs[0], found) == pytest.approx(8.0)


def test_without_trainings_there_is_nothing_to_bound() -> None:
    found = workload_of([Job("s", request=0.1, duration=10.0)], ONE, "x")
    assert math.isnan(lower_bound.mean_completion(found))
    assert math.isnan(lower_bound.makespan(found))


@given(
    st.sampled_from(sorted(registry.policies([]))),
    st.sampled_from(list(Mode)),
    st.integers(0, 1000),
    st.integers(1, 3),
)
@examples(60)
def test_nobody_beats_the_bounds(name, mode, seed, nodes) -> None:
    jobs = trainings(6, "random", 10.0, seed)
    found = workload_of(jobs, [HostSpec(f"n{k}", 2.0) for k in range(nodes)], "x")
    results = simulation(found, name, mode, clairvoyant=True).run()
    summary = summarise(results)
    assert summary.mean_completion >= lower_bound.mean_completion(found) * (1 - 1e-9)
    assert summary.makespan >= lower_bound.makespan(found) * (1 - 1e-9)
    by_name = {job.name: job for job in found.jobs}
    for one in results:
        assert one.completion is not None
        assert one.completion >= lower_bound.seconds_alone(by_name[one.name], found) * (1 - 1e-9)
