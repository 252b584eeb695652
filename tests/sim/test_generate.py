"""Generated arrivals and trainings."""

import random
import statistics

import pytest

from dltools.sim.generate import ARRIVALS, TRAININGS, arrivals, trainings


def times(kind: str, n: int, gap: float) -> list[float]:
    return arrivals(kind, n, gap, random.Random(1))


def test_fixed_arrivals_are_a_gap_apart_and_a_burst_comes_at_once() -> None:
    assert times("fixed", 3, 5.0) == [0, 5, 10]
    assert times("burst", 3, 5.0) == [0, 0, 0]
    assert times("poisson", 3, 0.0) == [0, 0, 0]  # a gap of nothing


@pytest.mark.parametrize("kind", ["random", "poisson"])
def test_random_arrivals_are_a_gap_apart_in_the_mean(kind) -> None:
    found = times(kind, 5000, 3.0)
    assert found == sorted(found)
    assert found[-1] / 5000 == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("kind", ARRIVALS)
def test_trainings_are_of_the_usual_kinds_with_half_to_double_their_work(kind) -> None:
    usual = {job.name: job for job in TRAININGS}
    found = trainings(200, kind, 1.0, 3)
    ratios = [job.work / usual[job.name.rpartition("-")[0]].work for job in found]
    assert 0.5 <= min(ratios) < 0.6
    assert 1.8 < max(ratios) <= 2
    assert statistics.median(ratios) == pytest.approx(1.0, abs=0.15)
    assert len({job.name for job in found}) == 200
