"""Progress points of a container and metric."""

from dltools.observations.host_samples import Points


def test_a_time_bounds_the_points_that_are_read_next() -> None:
    series = Points([10, 20, 30], [1.0, 2.0, 3.0])
    assert [series.upto(time) for time in (9, 10, 25, 30)] == [0, 1, 2, 3]
    series.at = 2
    assert series.upto(10) == 2
