"""SLAQ, worked by hand."""

import pytest
from helpers.observed_rows import container, decisions_of, node, planner_of, point

from dltools.observations.table import Row
from dltools.plan.policy import slaq
from dltools.plan.realisation.options import Mode


def test_the_steeper_curve_gets_more_and_all_get_the_floor() -> None:
    made: list[Row] = []
    for round_ in range(12):
        now = 5 * round_
        made.append(node(now))
        for name, value in (("steep", 1.0 - 0.05 * round_), ("flat", 0.5 + 0.5 * 0.1**round_)):
            made += [container(now, name, now), point(now, name, value)]
    found = decisions_of(planner_of(made, slaq.SLAQ, Mode.WEIGHT))
    steep, flat = found["steep"].allocation.share or 0, found["flat"].allocation.share or 0
    assert steep + flat == pytest.approx(1)
    assert flat == pytest.approx(0.1 / 2)


def test_a_job_of_unknown_curve_has_an_equal_share() -> None:
    made: list[Row] = []
    for round_ in range(12):
        made += [
            node(5 * round_),
            container(5 * round_, "known", 5 * round_),
            point(5 * round_, "known", 1.0 - 0.05 * round_),
        ]
    made += [container(55, "new", 1), point(55, "new", 1.0)]
    found = decisions_of(planner_of(made, slaq.SLAQ, Mode.WEIGHT))
    assert found["new"].allocation.share == pytest.approx(0.5)
    assert found["known"].allocation.share == pytest.approx(0.5)
