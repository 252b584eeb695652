"""Learning curves: fits of given histories, predictions of given votes, and shapes."""

import json
import math
import random
from collections.abc import Callable, Sequence

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.saved_values import from_json, to_json
from dltools.plan.signals import curves
from dltools.plan.signals.curves import SHAPES, Curve, Family, Voter


def history(shape: Callable[[float], float], n: int = 200) -> tuple[list[float], list[float]]:
    return [float(x) for x in range(n)], [shape(x / n) for x in range(n)]


def fitted(shape: Callable[[float], float], n: int = 200) -> Curve:
    found = curves.fit(*history(shape, n))
    assert found is not None
    return found


@pytest.mark.parametrize("rate", [3.0, 6.0, 12.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_exponential_s_end_is_found(rate, sign) -> None:
    found = fitted(lambda u: 0.3 + sign * 2 * math.exp(-rate * u))
    end = found.end
    assert end is not None
    assert abs(end - 0.3) < 0.03
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
    found = curves.fit(works, values)
    assert found is not None
    assert abs(found.value_at(300) - 0.3) < 0.1


@pytest.mark.parametrize(
    ("shape", "target", "work"),
    [
        (lambda u: 0.3 + 2 * math.exp(-6 * u), 0.1, math.inf),  # beyond its end
        (lambda u: 1 + u, 0.5, math.inf),  # it goes the other way
        (lambda u: 1 + u, -5, math.inf),
        (lambda u: 1 + u, 1.5, 0.0),  # it has passed the target
    ],
)
def test_the_work_to_a_target_by_a_curve_that_was_fitted(shape, target, work) -> None:
    assert fitted(shape).work_to(target) == work


def test_a_straight_line_has_no_end() -> None:
    found = fitted(lambda u: 1 - 0.5 * u)
    assert found.end is None
    assert found.to_convergence == math.inf


def test_a_flat_curve_is_flat() -> None:
    found = fitted(lambda _: 0.5)
    assert found.is_flat
    assert found.value_at(1e6) == pytest.approx(0.5)
    assert not fitted(lambda u: 1 + u).is_flat


@pytest.mark.parametrize("values", [[], [1.0], [1, 2, 3, 4], [math.nan] * 9, [1e200] * 9])
def test_too_few_or_too_large_values_give_no_curve(values) -> None:
    assert curves.fit([float(i) for i in range(len(values))], values) is None


def test_without_work_between_the_points_there_is_no_curve() -> None:
    assert curves.fit([5.0] * 20, [1 / (i + 1) for i in range(20)]) is None


@examples(200)
@given(st.lists(st.tuples(st.floats(), st.floats(0, 1e12)), max_size=60), st.floats())
def test_any_history_gives_a_curve_or_none(points, target) -> None:
    works = sorted(work for _, work in points)
    found = curves.fit(works, [value for value, _ in points])
    if found is not None:
        found.value_at(works[-1] * 2)
        assert not found.work_to(target) < 0
        assert found.end is None or not math.isnan(found.end)
        assert not found.to_convergence < 0
        assert from_json(Curve, json.loads(json.dumps(to_json(found)))) == found


@examples(50)
@given(st.integers(0, 999), st.sampled_from([2.0**-20, 0.5, 8.0, 2.0**20]))
def test_the_scale_of_values_changes_nothing(seed, factor) -> None:
    chance = random.Random(seed)
    works = [float(i) for i in range(50)]
    values = [1 / (1 + i) + chance.gauss(0, 0.01) for i in range(50)]
    one, other = curves.fit(works, values), curves.fit(works, [v * factor for v in values])
    assert one is not None and other is not None
    assert other.value_at(80) == one.value_at(80) * factor
    assert other.work_to(0.01 * factor) == one.work_to(0.01)


LINE = 0
EXP = next(k for k, one in enumerate(SHAPES) if one.kind is Family.EXP and one.rate == 1.0)


def curve(*voters: Voter, level: float = 1.0) -> Curve:
    """A curve over the CPU seconds 100 to 300."""
    return Curve(100.0, 300.0, level, voters)


def lines(*falls: tuple[float, float]) -> Curve:
    """Straight lines from 10, each with its fall over the history and its weight."""
    return curve(*((LINE, 10.0, -fall, weight) for fall, weight in falls))


def test_a_value_is_on_the_line_through_the_history() -> None:
    found = lines((4.0, 1.0))
    works = (100.0, 200.0, 300.0, 400.0)
    assert [found.value_at(work) for work in works] == [10.0, 8.0, 6.0, 4.0]
    assert found.value_at(0.0) == 10.0  # before the history it is as at its begin


def test_a_prediction_is_the_weighted_median_of_the_votes() -> None:
    assert lines((1.0, 1.0), (2.0, 1.0), (9.0, 1.0)).value_at(300.0) == 8.0
    assert lines((1.0, 1.0), (2.0, 1.0), (9.0, 3.0)).value_at(300.0) == 1.0
    assert lines((1.0, 1.0), (3.0, 1.0)).value_at(300.0) == 7.0  # the smaller of two equal votes


def test_a_value_soon_is_by_the_shape_that_fits_best() -> None:
    found = lines((1.0, 1.0), (2.0, 1.0), (9.0, 3.0))
    assert [found.soon(work) for work in (100.0, 300.0, 400.0)] == [10.0, 9.0, 8.5]


@pytest.mark.parametrize(
    ("target", "work"),
    [(6.0, 0.0), (4.0, 100.0), (5.0, 50.0), (8.0, 0.0), (10.0, 0.0), (11.0, math.inf)],
)
def test_the_work_to_a_target_counts_from_the_last_point(target, work) -> None:
    assert lines((4.0, 1.0)).work_to(target) == work


def test_a_flat_vote_never_meets_a_target() -> None:
    assert curve((LINE, 10.0, 0.0, 1.0)).work_to(9.0) == math.inf


def test_the_end_is_known_where_voters_of_half_the_weight_know_it() -> None:
    three: Sequence[Voter] = ((EXP, 2.0, 8.0, 1.0), (EXP, 1.0, 9.0, 1.0), (EXP, 4.0, 6.0, 1.0))
    assert curve(*three, (LINE, 10.0, -4.0, 3.0)).end == 2.0
    assert curve(*three, (LINE, 10.0, -4.0, 3.1)).end is None
    assert lines((4.0, 1.0)).end is None


def test_convergence_is_where_only_a_part_of_the_way_is_left() -> None:
    # 2 + 8 exp(-u): 2 % of its way is left at u = ln 50, which is ln 50 - 1 histories ahead.
    found = curve((EXP, 2.0, 8.0, 1.0))
    assert found.to_convergence == pytest.approx((math.log(50) - 1) * 200.0)
    assert lines((4.0, 1.0)).to_convergence == math.inf


@pytest.mark.parametrize(("fall", "is_flat"), [(0.0, True), (0.009, True), (0.011, False)])
def test_a_curve_is_flat_that_has_changed_by_less_than_a_thousandth(fall, is_flat) -> None:
    assert curve((LINE, 10.0, -fall, 1.0), level=10.0 - fall).is_flat is is_flat


@pytest.mark.parametrize(
    "damage", [{"voters": [[0, 1]]}, {"noise": "x"}, {"voters": None}, {"voters": [[999, 0, 0, 1]]}]
)
def test_damage_is_refused(damage) -> None:
    with pytest.raises((ValueError, TypeError)):
        from_json(Curve, {**to_json(curve((LINE, 10.0, -4.0, 0.25))), **damage})
