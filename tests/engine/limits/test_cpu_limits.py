"""CPU limits of located containers: in force, on record, attainable, and those that are refused."""

import math

import pytest
from helpers.fake_engine import ID, FakeEngine
from helpers.located_containers import CPUS, EVERY_CPU, located, on_version_1, on_version_2

from dltools.engine import cgroup, cpu_demand
from dltools.engine.cgroup import Cgroup
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.interface import Engine, GoneError
from dltools.engine.limits.cpu_limits import (
    Locator,
    attainable_settings,
    out_of_bounds,
    recorded_settings,
    settings_in_force,
    unfit_cpu_list,
)

# Where the kernel's files are visible


def test_version_1_shows_the_settings_in_force(tmp_path) -> None:
    for name, text in {
        "cpu.cfs_quota_us": "25000",
        "cpu.cfs_period_us": "50000",
        "cpu.shares": "300",
        "cpuset.effective_cpus": "1-2",
    }.items():
        (tmp_path / name).write_text(text + "\n")
    there = on_version_1(tmp_path, NanoCpus=3_000_000_000, CpuShares=5)
    assert settings_in_force(there) == {"cpus": 0.5, "weight": 300.0, "cpuset": "1-2"}


def test_version_2_shows_the_settings_in_force(tmp_path) -> None:
    for name, text in {
        "cpu.max": "25000 50000",
        "cpu.weight": "50",
        "cpuset.cpus.effective": EVERY_CPU,
    }.items():
        (tmp_path / name).write_text(text + "\n")
    there = on_version_2(tmp_path)
    assert settings_in_force(there) == {"cpus": 0.5, "weight": 512.0, "cpuset": None}


def test_a_quota_of_all_cpus_is_no_quota(tmp_path) -> None:
    (tmp_path / "cpu.max").write_text(f"{CPUS * 100_000} 100000\n")
    assert settings_in_force(on_version_2(tmp_path))["cpus"] is None


def test_the_record_may_differ_from_what_is_in_force(tmp_path) -> None:
    (tmp_path / "cpu.max").write_text("25000 50000\n")
    there = on_version_2(tmp_path, NanoCpus=1_500_000_000, CpuShares=512, CpusetCpus="2")
    assert recorded_settings(there) == {"cpus": 1.5, "weight": 512.0, "cpuset": "2"}


# Where no cgroup is visible


@pytest.mark.parametrize(
    ("started", "cpus"),
    [
        ({}, None),
        ({"NanoCpus": CPUS * 1_000_000_000}, None),
        ({"CpuQuota": 10_000, "CpuPeriod": 20_000}, 0.5),
    ],
)
def test_the_inspection_tells_quota_and_weight(started, cpus) -> None:
    for shares, weight in ((None, 1024.0), (0, 1024.0), (512, 512.0)):
        found = settings_in_force(located(**started, CpuShares=shares))
        assert found == {"cpus": cpus, "weight": weight, "cpuset": None}


@pytest.mark.parametrize(
    ("started", "cpuset"), [("", None), ("0", "0"), (f"0-{CPUS - 1}", None), ("1,0", "0-1")]
)
def test_the_inspection_tells_the_cpus(started, cpuset) -> None:
    expected = None if cpuset == f"0-{CPUS - 1}" else cpuset
    assert settings_in_force(located(CpusetCpus=started))["cpuset"] == expected


# What the kernel can hold


@pytest.mark.parametrize(
    ("weight", "held"), [(2, 10.24), (10, 10.24), (1024, 1024), (300, 296.96), (262_144, 102_400)]
)
def test_version_2_holds_the_nearest_step(tmp_path, weight, held) -> None:
    """10 is met by its step: it is neither a failure nor something to be set again."""
    there = on_version_2(tmp_path)
    assert attainable_settings(there, {"weight": weight}) == {"weight": pytest.approx(held)}


def test_version_1_holds_what_it_is_told(tmp_path) -> None:
    there = on_version_1(tmp_path)
    wanted = {"cpus": 1.5, "weight": 10, "cpuset": "0"}
    assert attainable_settings(there, wanted) == wanted
    for cpus in (4.0, 99):
        assert attainable_settings(there, {"cpus": cpus}) == {"cpus": None}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cpus", [None, 0.01, 0.5, 1, 2.0, 1e6]),
        ("weight", [2, 2.0, 10, 1024, 262_144.0]),
        ("cpuset", ["0"]),
    ],
)
def test_possible_settings(name, values) -> None:
    assert {out_of_bounds({name: value}) for value in values} == {None}


@pytest.mark.parametrize(
    "cpus", [0, 0.0, 0.0099, 1e-9, -1, math.nan, math.inf, -math.inf, True, "1", [1], {}], ids=repr
)
def test_impossible_quotas(cpus) -> None:
    assert f"cpus {cpus!r}" in str(out_of_bounds({"cpus": cpus, "weight": 1024}))


@pytest.mark.parametrize(
    "weight", [None, 0, 1, 1.9, 10.7, 262_145, -5, math.nan, math.inf, True, "1024", [2]], ids=repr
)
def test_impossible_weights(weight) -> None:
    assert f"cpu_weight {weight!r}" in str(out_of_bounds({"cpus": None, "weight": weight}))


# CPU lists


@pytest.mark.parametrize("cpuset", ["", "x", "3-1", 7, ["0"]], ids=repr)
def test_malformed_cpu_lists(cpuset) -> None:
    reason = unfit_cpu_list(located(), {"cpuset": cpuset}, {"cpuset": None})
    assert reason is None if cpuset == "" else "is not a list of CPUs" in str(reason)


@pytest.mark.parametrize("cpuset", ["4", "0-900"])
def test_cpus_that_do_not_exist(cpuset) -> None:
    reason = unfit_cpu_list(located(), {"cpuset": cpuset}, {"cpuset": None})
    assert reason == f"cpuset {cpuset}: containers can use only CPUs 0-3 here"


def test_a_list_that_only_grows_is_fit() -> None:
    assert unfit_cpu_list(located(), {"cpuset": "0-2"}, {"cpuset": "1"}) is None
    assert unfit_cpu_list(located(), {"cpuset": None}, {"cpuset": "1"}) is None
    assert unfit_cpu_list(located(), {"weight": 10}, {}) is None


def test_fewer_cpus_need_threads_that_are_visible() -> None:
    reason = unfit_cpu_list(located(), {"cpuset": "0-1"}, {"cpuset": None})
    assert "threads are not visible" in str(reason)


@pytest.mark.parametrize(("busy", "is_fit"), [(0, True), (2, True), (3, False)])
def test_fewer_cpus_than_busy_threads_are_unfit(tmp_path, monkeypatch, busy, is_fit) -> None:
    monkeypatch.setattr(cpu_demand, "count_busy", lambda _: busy)
    reason = unfit_cpu_list(on_version_1(tmp_path), {"cpuset": "0-1"}, {"cpuset": None})
    assert (reason is None) == is_fit
    assert is_fit or f"{busy} busy threads" in str(reason)


# Locating: containers of a remote engine, and stopped ones, have no cgroup here


@pytest.fixture
def engine(fake_engine: FakeEngine) -> Engine:
    del fake_engine
    return DockerEngine()


def test_a_container_without_processes_has_no_cgroup(engine) -> None:
    found = Locator(engine).locate_by_id(ID)
    assert (found.container.id, found.cgroup) == (ID, None)
    assert (found.usable_cpus, found.usable_cpu_list) == (4.0, "0-3")
    assert found.controller("cpu") is None


def test_another_process_with_the_container_s_number_is_not_it(engine, fake_engine) -> None:
    """The engine may be remote: process 1 here is not the container's."""
    fake_engine.pid = 1
    assert Locator(engine).locate_by_id(ID).cgroup is None


def test_a_local_container_has_its_cgroup(engine, fake_engine, monkeypatch, tmp_path) -> None:
    its_own = Cgroup({"cpu": tmp_path, "cpuset": tmp_path}, None)
    monkeypatch.setattr(cgroup, "belongs_to", lambda pid, key, *_, **__: (pid, key) == (7, ID))
    monkeypatch.setattr(cgroup, "of_process", lambda *_, **__: its_own)
    fake_engine.pid = 7
    found = Locator(engine).locate_by_id(ID)
    assert found.cgroup is its_own
    assert found.controller("cpu") == (tmp_path, 1)


def test_a_container_that_is_gone_is_an_error(engine) -> None:
    with pytest.raises(GoneError):
        Locator(engine).locate_by_id("0")


def test_the_version_is_that_of_the_cpu_settings(tmp_path) -> None:
    assert on_version_2(tmp_path).cgroup_version == 2
    assert on_version_1(tmp_path).cgroup_version == 1
    assert located().cgroup_version == 1
