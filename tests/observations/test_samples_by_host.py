"""Tables as the samples of each host."""

import math
from itertools import pairwise
from typing import Any

from helpers.observed_rows import at, container, job_id, node, point

from dltools.notation.times import to_micros
from dltools.observations.host_samples import HostSamples, Points
from dltools.observations.samples_by_host import (
    newest_time,
    rows_after,
    samples_by_host,
    table_chunks,
)
from dltools.observations.table import Row, to_table


def samples_of(*rows: Row, **more: Any) -> dict[str, HostSamples]:
    (chunk,) = table_chunks(to_table(rows))
    return samples_by_host(chunk, **more)


def micros(seconds: float) -> int:
    return to_micros(at(seconds))


def rows(name: str, samples: HostSamples) -> list[list[Any]]:
    """A column's values by sample."""
    bounds = samples.bounds
    return [samples.rows[name][low:high] for low, high in pairwise(bounds)]


def test_rows_of_one_time_are_a_sample() -> None:
    found = samples_of(
        node(0),
        container(0, "a", 1.0),
        container(0, "b", 2.0),
        node(5, 4.0),
        container(5, "a", 1.5),
        container(9, "a", 2.0),
    )["node"]
    assert found.times == [micros(0), micros(5), micros(9)]
    assert found.sizes[:2] == [2.0, 4.0]
    assert math.isnan(found.sizes[2])
    assert found.first_rows == [0, 3, 5]
    assert rows("container_name", found) == [["a", "b"], ["a"], ["a"]]
    assert rows("cpu_seconds", found) == [[1.0, 2.0], [1.5], [2.0]]
    assert found.layout(0).ids == [job_id("a"), job_id("b")]


def test_a_host_that_was_not_reached_has_no_sample_then() -> None:
    lost = node(5) | {"cpu_count": None, "gap": "no sample: no answer within 10 s"}
    found = samples_of(node(0), container(0, "a", 1.0), lost, node(9), container(9, "a", 2.0))
    assert found["node"].times == [micros(0), micros(9)]
    assert samples_of(lost)["node"].times == []


def test_the_points_of_a_container_belong_to_its_host() -> None:
    here, there = (point(1, "a", value, host=host) for host, value in (("x", 1.0), ("y", 2.0)))
    found = samples_of(node(0, host="x"), node(0, host="y"), here, there)
    values = {name: samples.points[job_id("a")]["loss"].values for name, samples in found.items()}
    assert values == {"x": [1.0], "y": [2.0]}


def test_each_host_has_its_own_samples() -> None:
    found = samples_of(node(0, host="x"), node(1, host="y"), container(1, "a", 1.0, host="y"))
    times = {name: samples.times for name, samples in found.items()}
    assert times == {"x": [micros(0)], "y": [micros(1)]}
    assert rows("container_name", found["x"]) == [[]]


def test_of_rows_that_name_a_container_twice_the_last_counts() -> None:
    found = samples_of(node(0), container(0, "a", 1.0), container(0, "a", 2.0))["node"]
    assert rows("cpu_seconds", found) == [[2.0]]


def test_containers_that_do_not_run_or_have_no_id_are_left_out() -> None:
    found = samples_of(
        node(0),
        container(0, "a", 1.0, state="exited"),
        container(0, "b", 1.0, state=None),
        container(0, "c", 1.0, state="paused"),
        container(0, "d", 1.0, container_id=None),
    )["node"]
    assert rows("container_name", found) == [["b", "c"]]


def test_a_size_that_no_host_has_is_unknown() -> None:
    found = samples_of(node(0, math.inf), node(1, -1.0), node(2, 2.0), node(2, 0.0))["node"]
    assert [math.isnan(size) for size in found.sizes] == [True, True, False]
    assert found.sizes[2] == 2.0


def test_points_are_by_container_and_metric_in_order_of_time() -> None:
    found = samples_of(
        node(0),
        point(1, "a", 0.5),
        point(1, "a", 0.9, "accuracy"),
        point(2, "a", math.nan),
        point(2, "b", 0.1),
        point(3, "c", 0.1) | {"value": None},
        point(3, "d", 0.1, container_id=None),
    )["node"].points
    loss = found[job_id("a")]["loss"]
    assert loss.times == [micros(1), micros(2)]
    assert [repr(value) for value in loss.values] == ["0.5", "nan"]
    assert sorted(found) == sorted([job_id("a"), job_id("b")])


def test_rows_after_the_last_sample_of_their_host_are_read_again() -> None:
    samples = [node(0), node(5), container(5, "a", 1.0)]
    (table,) = table_chunks(to_table([*samples, point(4, "a", 0.5), point(6, "a", 0.4)]))
    assert rows_after(table, {"node": None}).num_rows == table.num_rows
    later = rows_after(table, {"node": micros(4)})
    assert later.column("kind").to_pylist() == ["node", "container", "progress"]
    assert rows_after(table, {"node": micros(5)}).column("value").to_pylist() == [0.4]


def test_samples_that_were_complete_before_are_ignored() -> None:
    found = samples_of(node(0), node(5), container(5, "a", 1.0), sampled_at={"node": micros(0)})
    assert found["node"].times == [micros(5)]


def test_the_newest_time_is_that_of_samples_and_points() -> None:
    event = {"time": at(9), "host": "node", "kind": "event", "event": "start"}
    assert newest_time(to_table([node(0), point(3, "a", 1.0), event])) == micros(3)
    assert newest_time(to_table([event])) is None


def test_chunks_have_only_the_columns_that_are_needed() -> None:
    (chunk,) = table_chunks(to_table([node(0)]))
    assert "memory_total_bytes" not in chunk.column_names


def test_a_time_bounds_the_points_that_are_read_next() -> None:
    series = Points([10, 20, 30], [1.0, 2.0, 3.0])
    assert [series.upto(time) for time in (9, 10, 25, 30)] == [0, 1, 2, 3]
    series.at = 2
    assert series.upto(10) == 2
