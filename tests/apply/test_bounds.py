"""Settings that are refused before anything is sent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from helpers.located_containers import located, on_version_1

from dltools.apply import threads
from dltools.apply.bounds import out_of_bounds, unfit_cpu_list


@pytest.mark.parametrize("cpus", [None, 0.01, 0.5, 1, 2.0, 1e6])
def test_possible_quotas(cpus: float | None) -> None:
    assert out_of_bounds({"cpus": cpus}) is None


@pytest.mark.parametrize(
    "cpus", [0, 0.0, 0.0099, 1e-9, -1, math.nan, math.inf, -math.inf, True, "1", [1], {}], ids=repr
)
def test_impossible_quotas(cpus: Any) -> None:
    assert f"cpus {cpus!r}" in str(out_of_bounds({"cpus": cpus, "cpu_weight": 1024}))


@pytest.mark.parametrize("weight", [2, 2.0, 10, 1024, 262_144.0])
def test_possible_weights(weight: float) -> None:
    assert out_of_bounds({"cpu_weight": weight}) is None


@pytest.mark.parametrize(
    "weight", [None, 0, 1, 1.9, 10.7, 262_145, -5, math.nan, math.inf, True, "1024", [2]], ids=repr
)
def test_impossible_weights(weight: Any) -> None:
    assert f"cpu_weight {weight!r}" in str(out_of_bounds({"cpus": None, "cpu_weight": weight}))


def test_other_settings_are_within_bounds() -> None:
    assert out_of_bounds({}) is None
    assert out_of_bounds({"cpuset": "0"}) is None


# CPU lists


@pytest.mark.parametrize("cpuset", ["", "x", "3-1", 7, ["0"]], ids=repr)
def test_malformed_cpu_lists(cpuset: Any) -> None:
    reason = unfit_cpu_list(located(), {"cpuset": cpuset}, {"cpuset": None})
    assert reason is None if cpuset == "" else "is not a list of CPUs" in str(reason)


@pytest.mark.parametrize("cpuset", ["4", "0-900"])
def test_cpus_that_do_not_exist(cpuset: str) -> None:
    reason = unfit_cpu_list(located(), {"cpuset": cpuset}, {"cpuset": None})
    assert reason == f"cpuset {cpuset}: containers can use only CPUs 0-3 here"


def test_a_list_that_only_grows_is_fit() -> None:
    assert unfit_cpu_list(located(), {"cpuset": "0-2"}, {"cpuset": "1"}) is None
    assert unfit_cpu_list(located(), {"cpuset": None}, {"cpuset": "1"}) is None
    assert unfit_cpu_list(located(), {"cpu_weight": 10}, {}) is None


def test_fewer_cpus_need_threads_that_are_visible() -> None:
    reason = unfit_cpu_list(located(), {"cpuset": "0-1"}, {"cpuset": None})
    assert "threads are not visible" in str(reason)


@pytest.mark.parametrize(("busy", "is_fit"), [(0, True), (2, True), (3, False)])
def test_fewer_cpus_than_busy_threads_are_unfit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: int, is_fit: bool
) -> None:
    monkeypatch.setattr(threads, "count_busy", lambda _: busy)
    reason = unfit_cpu_list(on_version_1(tmp_path), {"cpuset": "0-1"}, {"cpuset": None})
    assert (reason is None) == is_fit
    assert is_fit or f"{busy} busy threads" in str(reason)
