"""What a fitted curve predicts, worked by hand on curves whose votes are given."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest

from dltools.plan.policy.curve import Asymptote, Curve, Voter, from_json
from dltools.plan.policy.curve_shapes import SHAPES, Kind

LINE = 0
EXP = next(k for k, one in enumerate(SHAPES) if one.kind is Kind.EXP and one.rate == 1.0)


def curve(*voters: Voter, level: float = 1.0) -> Curve:
    """A curve over the CPU seconds 100 to 300."""
    return Curve(100.0, 300.0, level, 0.0, voters)


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
def test_the_work_to_a_target_counts_from_the_last_point(target: float, work: float) -> None:
    found = lines((4.0, 1.0))
    assert found.work_to(target) == work
    assert found.work_to(target) == work  # the second time from memory


def test_a_flat_vote_never_meets_a_target() -> None:
    assert curve((LINE, 10.0, 0.0, 1.0)).work_to(9.0) == math.inf


def test_an_exponential_tends_to_a_value_and_a_line_does_not() -> None:
    assert curve((EXP, 2.0, 8.0, 1.0)).asymptote() == Asymptote(2.0, 2.0, 2.0)
    assert lines((4.0, 1.0)).asymptote() is None


def test_the_end_is_known_where_voters_of_half_the_weight_know_it() -> None:
    three: Sequence[Voter] = ((EXP, 2.0, 8.0, 1.0), (EXP, 1.0, 9.0, 1.0), (EXP, 4.0, 6.0, 1.0))
    assert curve(*three, (LINE, 10.0, -4.0, 3.0)).asymptote() == Asymptote(2.0, 1.0, 4.0)
    assert curve(*three, (LINE, 10.0, -4.0, 3.1)).asymptote() is None


def test_convergence_is_where_only_a_part_of_the_way_is_left() -> None:
    # 2 + 8 exp(-u): a tenth of its way is left at u = ln 10, which is ln 10 - 1 histories ahead.
    found = curve((EXP, 2.0, 8.0, 1.0))
    assert found.convergence(0.1) == pytest.approx((math.log(10) - 1) * 200.0)
    assert found.convergence(0.9) == 0.0  # passed long ago
    assert lines((4.0, 1.0)).convergence(0.1) == math.inf


@pytest.mark.parametrize(("fall", "is_flat"), [(0.0, True), (0.009, True), (0.011, False)])
def test_a_curve_is_flat_that_has_changed_by_less_than_a_thousandth(
    fall: float, is_flat: bool
) -> None:
    assert curve((LINE, 10.0, -fall, 1.0), level=10.0 - fall).is_flat is is_flat


def test_a_curve_survives_a_round_trip() -> None:
    found = curve((EXP, 2.0, 8.0, 0.75), (LINE, 10.0, -4.0, 0.25))
    assert from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.parametrize(
    "data", [[], [1, 2, 3], [1, 2, 3, 4, [[0, 1]]], [1, 2, 3, "x", []], [1, 2, 3, 4, None]]
)
def test_damage_is_refused(data: list[object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
        from_json(data)
