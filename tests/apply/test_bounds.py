"""What is refused before anything is sent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dltools.apply.bounds import out_of_bounds
from dltools.apply.limits import Place, attainable
from dltools.engine.cgroup import Cgroup
from dltools.engine.containers import Container

JOB = Container("c" * 64, "job", "", "running", 1, None, False, {}, {}, {})


@pytest.mark.parametrize("cpus", [None, 0.01, 0.5, 1, 2.0, 1e6])
def test_quotas_that_can_be(cpus: float | None) -> None:
    assert out_of_bounds({"cpus": cpus}) is None


@pytest.mark.parametrize(
    "cpus", [0, 0.0, 0.0099, 1e-9, -1, math.nan, math.inf, -math.inf, True, "1", [1], {}], ids=repr
)
def test_quotas_that_cannot_be(cpus: Any) -> None:
    assert f"cpus {cpus!r}" in str(out_of_bounds({"cpus": cpus, "cpu_weight": 1024}))


@pytest.mark.parametrize("weight", [2, 2.0, 10, 1024, 262_144.0])
def test_weights_that_can_be(weight: float) -> None:
    assert out_of_bounds({"cpu_weight": weight}) is None


@pytest.mark.parametrize(
    "weight",
    [None, 0, 1, 1.9, 10.7, 262_145, -5, math.nan, math.inf, True, "1024", [2]],
    ids=repr,
)
def test_weights_that_cannot_be(weight: Any) -> None:
    assert f"cpu_weight {weight!r}" in str(out_of_bounds({"cpus": None, "cpu_weight": weight}))


def test_nothing_is_within_bounds() -> None:
    assert out_of_bounds({}) is None
    assert out_of_bounds({"cpuset": "0"}) is None


@pytest.mark.parametrize(
    ("weight", "held"), [(2, 10.24), (10, 10.24), (1024, 1024), (300, 296.96), (262_144, 102_400)]
)
def test_version_2_holds_the_nearest_step(tmp_path: Path, weight: float, held: float) -> None:
    """10 is met by its step: it is neither a failure nor something to be set again."""
    place = Place(JOB, Cgroup({}, tmp_path), 4.0, "0-3")
    assert attainable(place, {"cpu_weight": weight}) == {"cpu_weight": pytest.approx(held)}


def test_version_1_holds_what_it_is_told(tmp_path: Path) -> None:
    place = Place(JOB, Cgroup({"cpu": tmp_path}, None), 4.0, "0-3")
    wanted = {"cpus": 1.5, "cpu_weight": 10, "cpuset": "0"}
    assert attainable(place, wanted) == wanted
    assert attainable(place, {"cpus": 4.0}) == attainable(place, {"cpus": 99}) == {"cpus": None}
