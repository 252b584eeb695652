"""Least attained service, worked by hand."""

import pytest
from helpers.observed_rows import container, decisions_of, node, planner_of, point

from dltools.observations.table import Row
from dltools.plan.policy import las
from dltools.plan.realisation.options import Mode


@pytest.mark.parametrize(
    ("attained", "queue"), [(0, 1), (59.9, 1), (60, 2), (599, 2), (600, 3), (1e9, 3)]
)
def test_queues_of_attained_service(attained, queue) -> None:
    assert las.queue(attained, las.Parameters()) == queue


def test_the_job_with_the_least_cpu_goes_first_within_a_queue_too() -> None:
    made: list[Row] = []
    used = {"old": (700, 700), "mid": (80, 80), "early": (10, 10), "late": (None, 1)}
    for round_ in (0, 1):
        made.append(node(10 * round_))
        for name, seconds in used.items():
            if seconds[round_] is not None:
                made.append(container(10 * round_, name, seconds[round_]))
                made.append(point(10 * round_, name, 1.0))
    found = decisions_of(planner_of(made, las.LAS, Mode.WEIGHT))
    order = sorted(found, key=lambda name: found[name].reason.partition(",")[2])
    assert order == ["late", "early", "mid", "old"]
    floor = 0.02 / 4
    assert found["late"].allocation.share == pytest.approx(1 - 3 * floor)
    assert found["old"].allocation.share == pytest.approx(floor)
    assert [found[name].job_class for name in order] == ["Q1", "Q1", "Q2", "Q3"]
