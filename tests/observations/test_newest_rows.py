"""What a live view remembers of its samples."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from dltools.observations.newest_rows import ObservedHosts

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def container(second: int, name: str, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "container",
        "time": NOON + timedelta(seconds=second),
        "container_id": name,
        "container_name": name,
        "host": "h",
        "labels": None,
    } | changes


def point(name: str, metric: str, value: float) -> dict[str, Any]:
    row = {"kind": "progress", "host": "h", "container_id": name}
    return row | {"metric": metric, "value": value}


def test_containers_are_in_order_and_have_their_row_before() -> None:
    host = ObservedHosts()
    host.take([container(0, "b")])
    host.take([container(1, "b"), container(1, "a")])
    assert [one.row["container_name"] for one in host.containers] == ["b", "a"]
    assert [one.before and one.before["time"] for one in host.containers] == [NOON, None]


def test_an_earlier_sample_of_the_counters_is_the_row_before() -> None:
    host = ObservedHosts()
    host.take([container(0, "a"), container(2, "a")])
    (one,) = host.containers
    assert (one.before and one.before["time"], one.row["time"]) == (
        NOON,
        NOON + timedelta(seconds=2),
    )


def test_points_add_up_and_go_with_their_container() -> None:
    host = ObservedHosts()
    host.take([point("a", "loss", 3.0), container(0, "a")])
    host.take([container(1, "a"), point("a", "loss", 2.0)])
    assert host.containers[0].values["loss"].last == 2.0
    host.take([])
    host.take([container(3, "a")])
    assert host.containers[0].values == {}


def test_a_metric_without_a_finite_value_comes_last() -> None:
    host = ObservedHosts()
    host.take([container(0, "a"), point("a", "val_loss", math.nan), point("a", "loss", 1.0)])
    assert host.containers[0].metrics == ["loss", "val_loss"]


def test_a_label_chooses_the_metric() -> None:
    host = ObservedHosts()
    labels = '{"dltools.metric": "reward"}'
    points = [point("a", "val_loss", 1.0), point("a", "reward", 1.0)]
    host.take([container(0, "a", labels=labels), *points])
    (one,) = host.containers
    assert one.metrics == ["reward", "val_loss"]


def test_gpus_are_those_of_the_newest_sample() -> None:
    host = ObservedHosts()
    gpu = {"kind": "gpu", "host": "h", "container_id": "a", "gpu_utilization_ratio": 0.5}
    host.take([container(0, "a"), gpu, gpu | {"container_id": None}])
    assert host.containers[0].gpus == [gpu]
    host.take([container(1, "a")])
    assert host.containers[0].gpus == []
