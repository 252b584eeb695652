"""When jobs are forecast to end, worked by hand."""

import math

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.times import MICRO
from dltools.plan.forecast import completion
from dltools.plan.forecast.completion import Forecasts, Prospect, sharing_equally

FIVE = [Prospect(300.0, 1.0)] * 5  # of one thread, 300 CPU s each


def in_order(
    jobs: list[Prospect], tiers: list[list[int]], cpus: float, rest: int = 0
) -> list[float]:
    return next(completion.in_order(jobs, tiers, cpus, [rest]))


def one_by_one(jobs: list[Prospect]) -> list[list[int]]:
    return [[at] for at in range(len(jobs))]


def test_five_equal_jobs_on_two_cpus() -> None:
    """Side by side each has two fifths of a CPU; in order they end in pairs, the last one alone;
    the last three side by side have two thirds of a CPU each."""
    assert sharing_equally(FIVE, 2.0) == pytest.approx([750.0] * 5)
    assert in_order(FIVE, one_by_one(FIVE), 2.0) == pytest.approx([300, 300, 600, 600, 900])
    mixed = in_order(FIVE, one_by_one(FIVE), 2.0, rest=3)
    assert mixed == pytest.approx([300, 300, 750, 750, 750])


def test_a_narrow_job_leaves_what_it_cannot_use() -> None:
    """On four CPUs a job of one thread has one, and one of four threads the other three: 60 s for
    each; then the wide one has all four for what is left."""
    jobs = [Prospect(60.0, 1.0), Prospect(260.0, 4.0)]
    assert sharing_equally(jobs, 4.0) == pytest.approx([60.0, 60.0 + 80.0 / 4])


def test_jobs_share_by_the_weights_that_owners_asked_for() -> None:
    """On one CPU a weight of 3 has three quarters: 10 CPU s in 40/3 s, and the other 10 / 3 by
    then. On two CPUs it can use one, whatever its weight."""
    jobs = [Prospect(10.0, 1.0, weight=3.0), Prospect(10.0, 2.0)]
    assert sharing_equally(jobs, 1.0) == pytest.approx([40 / 3, 20.0])
    assert sharing_equally(jobs, 2.0) == pytest.approx([10.0, 10.0])
    assert sharing_equally(jobs[::-1], 1.0) == pytest.approx([20.0, 40 / 3])


def test_turns_of_the_same_length_give_a_wide_job_more() -> None:
    """Each runs for two thirds of the time until the narrow ones end, after 90 s."""
    jobs = [Prospect(60.0, 1.0), Prospect(60.0, 1.0), Prospect(300.0, 4.0)]
    assert in_order(jobs, [[0, 1, 2]], 4.0) == pytest.approx([90.0, 90.0, 105.0])


def test_threads_that_spin_lose_side_by_side_and_nothing_in_turns() -> None:
    """Each of two jobs of two threads has half of the two CPUs: 0.5^1.5 of that is useful."""
    jobs = [Prospect(100.0, 2.0, exponent=1.5)] * 2
    assert in_order(jobs, [[0, 1]], 2.0) == pytest.approx([100.0, 100.0])
    assert sharing_equally(jobs, 2.0) == pytest.approx([100 / 0.5**1.5] * 2)


def test_a_job_that_does_not_fit_beside_the_first_has_what_is_left() -> None:
    """The first has two of three CPUs, the second the third one: 100 of its 200 CPU s in the time
    of the first; then both that it can use."""
    jobs = [Prospect(200.0, 2.0), Prospect(200.0, 2.0)]
    assert in_order(jobs, [[0], [1]], 3.0) == pytest.approx([100.0, 150.0])


def test_a_job_without_an_end_never_ends() -> None:
    jobs = [Prospect(10.0, 1.0), Prospect(math.inf, 1.0)]
    assert sharing_equally(jobs, 1.0) == pytest.approx([20.0, math.inf])


@examples(100)
@given(
    st.lists(
        st.tuples(st.floats(1, 1e4), st.sampled_from([1.0, 2.0, 4.0])), min_size=1, max_size=9
    ),
    st.sampled_from([1.0, 2.0, 4.0, 16.0]),
    st.integers(0, 4),
)
def test_no_arrangement_does_more_than_all_cpus_can(made, cpus, rest) -> None:
    jobs = [Prospect(left, need) for left, need in made]
    works = math.fsum(job.left for job in jobs)
    for ends in (sharing_equally(jobs, cpus), in_order(jobs, one_by_one(jobs), cpus, rest)):
        assert max(ends) >= works / cpus * (1 - 1e-9)
        for job, end in zip(jobs, ends, strict=True):
            assert end >= job.left / min(job.cpus, cpus) * (1 - 1e-9)


@examples(100)
@given(st.lists(st.floats(1, 1e4), min_size=1, max_size=9), st.sampled_from([1.0, 2.0, 4.0]))
def test_on_one_cpu_shortest_first_ends_no_job_later_than_side_by_side(lefts, need) -> None:
    jobs = [Prospect(left, need) for left in sorted(lefts)]
    ordered, shared = in_order(jobs, one_by_one(jobs), 1.0), sharing_equally(jobs, 1.0)
    assert all(one <= other * (1 + 1e-9) for one, other in zip(ordered, shared, strict=True))


def test_how_wrong_forecasts_were() -> None:
    """Three jobs are to end after 40, 80 and 100 s, and end after 50, 80 and 80 s."""
    found = Forecasts().after(0, "priority", {"a": 40.0, "b": 80.0, "c": 100.0, "d": None})
    found = found.after(50 * MICRO, "priority", {"b": 28.0, "c": 48.0})
    assert (found.errors, found.error) == ((pytest.approx(0.2),), None)
    found = found.after(80 * MICRO, "priority", {})
    assert found.errors == pytest.approx((0.2, 0.0, -0.25))
    assert found.error == 0.0
    assert found.doubt == 0.0


def test_jobs_that_all_end_late_were_forecast_wrong_but_in_the_right_order() -> None:
    """After 100 s instead of 40, 80 and 75: late by 0.6, 0.2 and 0.25 of the time."""
    found = Forecasts().after(0, "priority", {"a": 40.0, "b": 80.0, "c": 75.0})
    found = found.after(100 * MICRO, "priority", {})
    assert (found.error, found.doubt) == (pytest.approx(0.25), pytest.approx(0.4 / 3))


@pytest.mark.parametrize(("mode", "who"), [("weight", "ab"), ("priority", "abc")])
def test_a_forecast_is_made_anew_when_the_arrangement_changes_or_a_job_arrives(mode, who) -> None:
    found = Forecasts().after(0, "priority", {"a": 40.0, "b": 80.0})
    found = found.after(20 * MICRO, mode, dict.fromkeys(who, 100.0))
    assert found.ends == dict.fromkeys(who, 120 * MICRO)


def test_a_forecast_of_a_few_seconds_is_not_compared() -> None:
    found = Forecasts().after(0, "priority", {"a": 2.0})
    assert found.after(4 * MICRO, "priority", {}).errors == ()
