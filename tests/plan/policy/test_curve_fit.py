"""Curve prediction: exact curves found again, any history taken."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.policy import curve_fit
from dltools.plan.policy.curve import Curve, from_json


def history(shape: Callable[[float], float], n: int = 200) -> tuple[list[float], list[float]]:
    return [float(x) for x in range(n)], [shape(x / n) for x in range(n)]


def fitted(shape: Callable[[float], float], n: int = 200) -> Curve:
    found = curve_fit.fit(*history(shape, n))
    assert found is not None
    return found


@pytest.mark.parametrize("rate", [3.0, 6.0, 12.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_exponential_s_end_is_found(rate: float, sign: int) -> None:
    found = fitted(lambda u: 0.3 + sign * 2 * math.exp(-rate * u))
    end = found.asymptote()
    assert end is not None
    assert end.least <= end.value <= end.greatest
    assert abs(end.value - 0.3) < 0.03
    assert abs(found.value_at(400) - (0.3 + sign * 2 * math.exp(-rate * 2))) < 0.03


def test_a_power_law_s_time_to_a_target_is_found() -> None:
    found = fitted(lambda u: (1 + 10 * u) ** -0.5)
    # 0.2 is met where 1 + 10 u = 25: at work 480, 281 after the last point at 199.
    assert abs(found.work_to(0.2) - 281) < 60


def test_noise_and_spikes_change_little() -> None:
    chance = random.Random(7)
    works, values = history(lambda u: 0.3 + 2 * math.exp(-6 * u))
    values = [v + chance.gauss(0, 0.02) for v in values]
    for place in range(10, 200, 25):
        values[place] = chance.choice([50.0, -50.0, math.nan, math.inf])
    found = curve_fit.fit(works, values)
    assert found is not None
    assert abs(found.value_at(300) - 0.3) < 0.1


def test_a_falling_curve_never_passes_its_end() -> None:
    assert fitted(lambda u: 0.3 + 2 * math.exp(-6 * u)).work_to(0.1) == math.inf


def test_a_curve_that_goes_the_other_way_never_meets_the_target() -> None:
    assert fitted(lambda u: 1 + u).work_to(0.5) == math.inf
    assert fitted(lambda u: 1 + u).work_to(-5) == math.inf


def test_a_target_that_the_curve_has_passed_needs_no_work() -> None:
    assert fitted(lambda u: 1 + u).work_to(1.5) == 0.0


def test_a_straight_line_has_no_end() -> None:
    found = fitted(lambda u: 1 - 0.5 * u)
    assert found.asymptote() is None
    assert found.convergence(0.02) == math.inf


def test_a_flat_curve_is_flat() -> None:
    found = fitted(lambda _: 0.5)
    assert found.is_flat
    assert found.value_at(1e6) == pytest.approx(0.5)
    assert not fitted(lambda u: 1 + u).is_flat


@pytest.mark.parametrize("values", [[], [1.0], [1, 2, 3, 4], [math.nan] * 9, [1e200] * 9])
def test_too_few_or_too_large_values_give_no_curve(values: list[float]) -> None:
    assert curve_fit.fit([float(i) for i in range(len(values))], values) is None


def test_without_work_between_the_points_there_is_no_curve() -> None:
    assert curve_fit.fit([5.0] * 20, [1 / (i + 1) for i in range(20)]) is None


@examples(200)
@given(st.lists(st.tuples(st.floats(), st.floats(0, 1e12)), max_size=60), st.floats())
def test_any_history_gives_a_curve_or_none(
    points: list[tuple[float, float]], target: float
) -> None:
    works = sorted(work for _, work in points)
    found = curve_fit.fit(works, [value for value, _ in points])
    if found is not None:
        found.value_at(works[-1] * 2)
        assert not found.work_to(target) < 0
        found.asymptote()
        found.convergence(0.02)
        assert from_json(json.loads(json.dumps(found.to_json()))) == found


@examples(50)
@given(st.integers(0, 999), st.sampled_from([2.0**-20, 0.5, 8.0, 2.0**20]))
def test_the_scale_of_values_changes_nothing(seed: int, factor: float) -> None:
    chance = random.Random(seed)
    works = [float(i) for i in range(50)]
    values = [1 / (1 + i) + chance.gauss(0, 0.01) for i in range(50)]
    one, other = curve_fit.fit(works, values), curve_fit.fit(works, [v * factor for v in values])
    assert one is not None and other is not None
    assert other.value_at(80) == one.value_at(80) * factor
    assert other.work_to(0.01 * factor) == one.work_to(0.01)
