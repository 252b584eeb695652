"""What a simulated job reports."""

from __future__ import annotations

import math
import statistics

import pytest

from dltools.sim.curve import LearningCurve


@pytest.mark.parametrize(
    ("curve", "halfway"),
    [
        (LearningCurve("loss", "exponential", 3.0, 1.0, 2.0), 1 + 2 * math.exp(-1)),
        (LearningCurve("loss", "power", 3.0, 1.0, 2.0), 1 + 2 / 2),
        (LearningCurve("loss", "linear", 3.0, 1.0), 2.0),
        (LearningCurve("loss", "points", table=((0.0, 5.0), (0.4, 3.0), (0.6, 1.0))), 2.0),
    ],
)
def test_the_value_halfway(curve: LearningCurve, halfway: float) -> None:
    assert curve.value(0.5) == pytest.approx(halfway)
    assert curve.falls


def test_points_hold_before_the_first_and_after_the_last() -> None:
    curve = LearningCurve("acc", "points", table=((0.2, 0.1), (0.8, 0.9)))
    assert (curve.value(0.0), curve.value(1.0), curve.falls) == (0.1, 0.9, False)


def test_noise_is_the_same_for_a_name_and_number_and_as_large_as_asked() -> None:
    curve = LearningCurve("loss", "linear", 3.0, 1.0, noise=0.1)
    values = [curve.reported(0.5, "a", number) for number in range(2000)]
    assert values == [curve.reported(0.5, "a", number) for number in range(2000)]
    assert statistics.mean(values) == pytest.approx(2.0, abs=0.02)
    assert statistics.stdev(values) == pytest.approx(0.2, rel=0.1)
    assert curve.reported(0.5, "a", 1) != curve.reported(0.5, "b", 1)
