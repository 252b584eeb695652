"""Settings written into the kernel's files of both cgroup versions."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.located_containers import located, on_version_1, on_version_2

from dltools.engine.interface import LocatedContainer, RefusedError, UnableError
from dltools.engine.limits.limit_writing import WritesLimits, names_in_files, write_settings
from dltools.engine.parts import LimitChange, Original
from dltools.notation.limits import Limits


def files(directory: Path, **texts: str) -> dict[str, Path]:
    """Make a cgroup's files; in names, _ stands for a dot where the kernel has one."""
    made = {}
    for key, text in texts.items():
        path = directory / key.replace("cpu_", "cpu.", 1).replace("max_", "max.", 1)
        path.write_text(text)
        made[path.name] = path
    return made


@pytest.fixture
def v1(tmp_path: Path) -> LocatedContainer:
    files(tmp_path, cpu_cfs_quota_us="-1\n", cpu_cfs_period_us="50000\n", cpu_shares="1024")
    return on_version_1(tmp_path)


@pytest.fixture
def v2(tmp_path: Path) -> LocatedContainer:
    files(tmp_path, cpu_max="max 50000\n", cpu_max_burst="0\n", cpu_weight="100\n")
    return on_version_2(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "quota", "shares"),
    [
        ({"cpus": 0.5}, "25000", "1024"),
        ({"cpus": None}, "-1", "1024"),
        ({"weight": 300.0}, "-1", "300"),
        ({"weight": 1.0}, "-1", "2"),
        ({"cpus": 2.0, "weight": 2048.0}, "100000", "2048"),
    ],
)
def test_version_1(v1, tmp_path, wanted, quota, shares) -> None:
    write_settings(v1, wanted)
    assert (tmp_path / "cpu.cfs_quota_us").read_text().strip() == quota
    assert (tmp_path / "cpu.cfs_period_us").read_text() == "50000\n"
    assert (tmp_path / "cpu.shares").read_text().strip() == shares


def test_a_quota_too_small_for_its_period_has_a_longer_one(v1, tmp_path) -> None:
    write_settings(v1, {"cpus": 0.01})
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "1000"
    assert (tmp_path / "cpu.cfs_period_us").read_text() == "100000"


@pytest.mark.parametrize(
    ("wanted", "most", "weight"),
    [
        ({"cpus": 0.5}, "25000 50000", "100"),
        ({"cpus": 0.001}, "1000 100000", "100"),
        ({"cpus": None}, "max 50000", "100"),
        ({"weight": 512.0}, "max 50000", "50"),
        ({"weight": 2.0}, "max 50000", "1"),
        ({"weight": 262_144.0}, "max 50000", "10000"),
        ({"cpus": 2.0, "weight": 2048.0}, "100000 50000", "200"),
    ],
)
def test_version_2(v2, tmp_path, wanted, most, weight) -> None:
    write_settings(v2, wanted)
    assert (tmp_path / "cpu.max").read_text().strip() == most
    assert (tmp_path / "cpu.weight").read_text().strip() == weight


def test_a_burst_above_the_new_quota_is_lowered_first(v2, tmp_path, monkeypatch) -> None:
    """The kernel refuses a quota below the burst."""
    order = []
    write = Path.write_text

    def noted(path: Path, text: str) -> int:
        order.append(path.name)
        return write(path, text)

    (tmp_path / "cpu.max.burst").write_text("40000\n")
    monkeypatch.setattr(Path, "write_text", noted)
    write_settings(v2, {"cpus": 0.5})
    assert order == ["cpu.max.burst", "cpu.max", "cpu.max.burst"]
    assert (tmp_path / "cpu.max.burst").read_text() == "25000"


def test_a_burst_within_the_new_quota_is_kept(v2, tmp_path) -> None:
    (tmp_path / "cpu.max.burst").write_text("10000\n")
    write_settings(v2, {"cpus": 0.5})
    assert (tmp_path / "cpu.max.burst").read_text() == "10000\n"


def test_a_kernel_without_bursts(v2, tmp_path) -> None:
    (tmp_path / "cpu.max.burst").unlink()
    write_settings(v2, {"cpus": 0.5})
    assert not (tmp_path / "cpu.max.burst").exists()
    assert (tmp_path / "cpu.max").read_text() == "25000 50000"


def test_a_cgroup_that_is_not_visible_is_an_error() -> None:
    with pytest.raises(OSError, match="not visible"):
        write_settings(located(), {"cpus": 0.5})


@pytest.mark.parametrize(
    ("has_gpu", "kind", "reason"),
    [
        (True, UnableError, "an engine update could cut off its GPU, and its cgroup files cannot"),
        (False, RefusedError, "its cgroup files cannot be written: its cpu cgroup is not visible"),
    ],
)
def test_limits_in_files_are_written_there_or_nowhere(v1, tmp_path, has_gpu, kind, reason) -> None:
    own = replace(v1, container=replace(v1.container, files_only=True, has_gpu=has_gpu))
    nobody = WritesLimits.__new__(WritesLimits)
    texts = {name: (tmp_path / name).read_text() for name in ("cpu.cfs_quota_us", "cpu.shares")}
    nobody.set_limits(LimitChange(own, {"cpus": 0.5, "weight": 300.0}, lambda: False))
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "25000"
    nobody.set_limits(LimitChange(own, {}, lambda: False, Original({}, texts)))
    assert {name: (tmp_path / name).read_text() for name in texts} == texts
    with pytest.raises(kind, match=reason):
        nobody.set_limits(LimitChange(replace(own, cgroup=None), {"cpus": 0.5}, lambda: False))


class Leaving(WritesLimits):
    """An engine that leaves limits to the files, and says how it is asked for the others."""

    leaves_record = True
    parts = ()

    def __init__(self) -> None:
        self.asked: list[Limits] = []

    def update_limits(self, change: LimitChange) -> None:
        self.asked.append(change.wanted)


def test_limits_are_written_to_the_files_and_the_rest_left_to_the_engine(v1, tmp_path) -> None:
    engine = Leaving()
    engine.set_limits(LimitChange(v1, {"cpus": 0.5, "weight": 300.0}, lambda: True))
    assert not engine.asked
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "25000"
    assert (tmp_path / "cpu.shares").read_text() == "300"


def test_a_limit_that_an_update_puts_back_is_written_again(v1, tmp_path) -> None:
    class Resetting(Leaving):
        """Under systemd an update of a CPU list writes a unit's quota, too."""

        def update_limits(self, *_: object) -> None:
            (tmp_path / "cpu.cfs_quota_us").write_text("-1")

    change = LimitChange(v1, {"cpus": 0.5, "cpuset": "0"}, lambda: True)
    Resetting().set_limits(change)
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "25000"


def test_where_the_files_cannot_be_written_the_engine_sets_the_limits(v1, tmp_path) -> None:
    engine = Leaving()
    assert {"cpus", "weight"} <= names_in_files(engine, v1)
    (tmp_path / "cpu.cfs_period_us").unlink()
    assert names_in_files(engine, v1) == set()
    engine.set_limits(LimitChange(v1, {"cpus": 0.5}, lambda: True))
    engine.set_limits(LimitChange(located(), {"weight": 40.0}, lambda: True))
    assert engine.asked == [{"cpus": 0.5}, {"weight": 40.0}]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_may_not_be_written_is_an_error(v1, tmp_path) -> None:
    (tmp_path / "cpu.cfs_quota_us").chmod(0o400)
    with pytest.raises(PermissionError):
        write_settings(v1, {"cpus": 0.5})
