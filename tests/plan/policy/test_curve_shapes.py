"""Shapes of learning curves: their values, and where they have a value."""

from __future__ import annotations

import math

import pytest

from dltools.plan.policy.curve_shapes import KNOTS, SHAPES, Kind, Shape


def shape(kind: Kind, rate: float = 0.0, offset: float = 1.0) -> Shape:
    return next(one for one in SHAPES
                if (one.kind, one.rate, one.offset) == (kind, rate, offset))  # fmt: skip


def name(one: Shape) -> str:
    return f"{one.kind.name} {one.rate:g} {one.offset:g}"


def test_values_at_the_ends() -> None:
    assert [shape(Kind.LINE).at(u) for u in (0.0, 1.0, 2.0)] == [0.0, 1.0, 2.0]
    assert shape(Kind.LOG).at(1.0) == pytest.approx(math.log(2))
    assert shape(Kind.EXP, 1.0).at(1.0) == pytest.approx(1 / math.e)
    assert shape(Kind.POWER, 0.5, 0.1).at(0.3) == pytest.approx(0.5)  # (1 + 3)^-0.5


def test_only_exponentials_and_power_laws_tend_to_a_value() -> None:
    assert {one.kind for one in SHAPES if one.kind.has_asymptote} == {Kind.EXP, Kind.POWER}


@pytest.mark.parametrize("one", SHAPES, ids=name)
def test_a_shape_has_a_value_where_it_says(one: Shape) -> None:
    for u in (0.0, 0.1, 0.5, 1.0, 3.0):
        assert one.where(one.at(u)) == pytest.approx(u, abs=1e-9)


@pytest.mark.parametrize("one", SHAPES, ids=name)
def test_a_shape_s_basis_is_centred_and_of_length_1(one: Shape) -> None:
    assert len(one.basis) == KNOTS
    assert math.fsum(one.basis) == pytest.approx(0, abs=1e-9)
    assert math.fsum(value**2 for value in one.basis) == pytest.approx(1)
    first, last = one.basis[0] * one.norm + one.mean, one.basis[-1] * one.norm + one.mean
    assert (first, last) == (pytest.approx(one.at(0)), pytest.approx(one.at(1)))


@pytest.mark.parametrize("one", SHAPES, ids=name)
def test_a_shape_never_has_a_value_that_it_only_tends_to(one: Shape) -> None:
    if one.kind.has_asymptote:
        assert one.where(0.0) is None
        assert one.where(-1.0) is None
    else:
        assert one.where(-1.0) is not None


def test_a_value_that_is_too_far_off_for_a_number_is_never_had() -> None:
    assert shape(Kind.LOG).where(1e3) is None
    assert shape(Kind.POWER, 0.25, 0.1).where(1e-9) is None
    assert len(set(map(name, SHAPES))) == len(SHAPES)
