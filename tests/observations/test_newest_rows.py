"""What a live view remembers of its samples."""

import math

from helpers import observed_rows
from helpers.observed_rows import at, gpu, observed_hosts, point

from dltools.observations.newest_rows import ObservedHosts
from dltools.observations.table import Row


def container(second: int, name: str, labels: str | None = None) -> Row:
    return observed_rows.container(second, name, 0.0, labels=labels)


def test_containers_are_in_order_and_have_their_row_before() -> None:
    host = ObservedHosts()
    host.take([container(0, "b")])
    host.take([container(1, "b"), container(1, "a")])
    assert [one.row["container_name"] for one in host.containers] == ["b", "a"]
    assert [one.before and one.before["time"] for one in host.containers] == [at(0), None]


def test_an_earlier_sample_of_the_counters_is_the_row_before() -> None:
    (one,) = observed_hosts([container(0, "a"), container(2, "a")]).containers
    assert (one.before and one.before["time"], one.row["time"]) == (at(0), at(2))


def test_points_add_up_and_go_with_their_container() -> None:
    host = ObservedHosts()
    host.take([point(0, "a", 3.0), container(0, "a")])
    host.take([container(1, "a"), point(0, "a", 2.0)])
    assert host.containers[0].values["loss"].last == 2.0
    host.take([])
    host.take([container(3, "a")])
    assert host.containers[0].values == {}


def test_a_metric_without_a_finite_value_comes_last() -> None:
    points = [point(0, "a", math.nan, "val_loss"), point(0, "a", 1.0)]
    (one,) = observed_hosts([container(0, "a"), *points]).containers
    assert one.metrics == ["loss", "val_loss"]


def test_a_label_chooses_the_metric() -> None:
    labels = '{"dltools.metric": "reward"}'
    points = [point(0, "a", 1.0, "val_loss"), point(0, "a", 1.0, "reward")]
    (one,) = observed_hosts([container(0, "a", labels=labels), *points]).containers
    assert one.metrics == ["reward", "val_loss"]


def test_gpus_are_those_of_the_newest_sample() -> None:
    own = gpu(0, "a", 1)
    host = observed_hosts([container(0, "a"), own, own | {"container_id": None}])
    assert host.containers[0].devices == [own]
    host.take([container(1, "a")])
    assert host.containers[0].devices == []
