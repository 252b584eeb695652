"""Progress points by container and metric."""

from __future__ import annotations

import math

from dltools.observations.host_samples import Point, points_after, points_by_metric


def point(time: int, metric: str = "loss", container: str = "a") -> Point:
    return Point(container, metric, time, time / 10, time, math.inf)


POINTS = [point(30), point(10), point(20, "accuracy"), point(20, container="b"), point(20)]


def test_points_are_grouped_and_sorted_by_time() -> None:
    found = points_by_metric(POINTS)
    assert {key: sorted(own) for key, own in found.items()} == {
        "a": ["accuracy", "loss"],
        "b": ["loss"],
    }
    assert found["a"]["loss"].times == [10, 20, 30]
    assert found["a"]["loss"].values == [1.0, 2.0, 3.0]
    assert found["a"]["loss"].steps == [10, 20, 30]


def test_points_after_a_time_come_back_in_order() -> None:
    found = points_by_metric(POINTS)
    assert points_after(found, None) == sorted(POINTS, key=lambda p: (p.time, p[0], p[1]))
    assert points_after(found, 10) == points_after(found, None)[1:]
    assert points_after(found, 20) == [point(30)]
    assert points_after(found, 30) == []


def test_a_time_bounds_the_points_that_are_read_next() -> None:
    series = points_by_metric(POINTS)["a"]["loss"]
    assert [series.upto(time) for time in (9, 10, 25, 30)] == [0, 1, 2, 3]
    series.at = 2
    assert series.upto(10) == 2


def test_points_that_came_late_are_put_in_order() -> None:
    series = points_by_metric([point(10), point(30)])["a"]["loss"]
    series.times.append(20)
    series.values.append(2.0)
    series.steps.append(20)
    series.epochs.append(math.inf)
    series.epoch_counts.append(None)
    series.step_counts.append(None)
    series.sort()
    assert series == points_by_metric([point(10), point(20), point(30)])["a"]["loss"]
