"""Locating containers: those of a remote engine, and stopped ones, have no cgroup here."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.fake_engine import ID, FakeEngine
from helpers.located_containers import located, on_version_1, on_version_2

from dltools.engine import cgroup
from dltools.engine.cgroup import Cgroup
from dltools.engine.interface import Engine, GoneError
from dltools.engine.limits.cpu_limits import Locator


def test_a_container_without_processes_has_no_cgroup(engine: Engine) -> None:
    found = Locator(engine).find(ID)
    assert (found.container.id, found.cgroup) == (ID, None)
    assert (found.usable_cpus, found.usable_cpu_list) == (4.0, "0-3")
    assert found.controller("cpu") is None


def test_another_process_with_the_container_s_number_is_not_it(
    engine: Engine, fake_engine: FakeEngine
) -> None:
    """The engine may be remote: process 1 here is not the container's."""
    fake_engine.pid = 1
    assert Locator(engine).find(ID).cgroup is None


def test_a_container_of_this_machine_has_its_cgroup(
    engine: Engine, fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    its_own = Cgroup({"cpu": tmp_path, "cpuset": tmp_path}, None)
    monkeypatch.setattr(cgroup, "belongs_to", lambda pid, key: (pid, key) == (7, ID))
    monkeypatch.setattr(cgroup, "of_process", lambda *_, **__: its_own)
    fake_engine.pid = 7
    found = Locator(engine).find(ID)
    assert found.cgroup is its_own
    assert found.controller("cpu") == (tmp_path, 1)


def test_a_container_that_is_gone_is_an_error(engine: Engine) -> None:
    with pytest.raises(GoneError):
        Locator(engine).find("0")


def test_the_version_is_that_of_the_cpu_settings(tmp_path: Path) -> None:
    assert on_version_2(tmp_path).cgroup_version == 2
    assert on_version_1(tmp_path).cgroup_version == 1
    assert located().cgroup_version == 1
