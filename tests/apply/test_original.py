"""Original settings: recorded before a change, compared and restored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.fake_engine import ID, FakeEngine
from helpers.located_containers import on_version_1, on_version_2

from dltools.apply.journal import Entry, Journal
from dltools.apply.original import Originals, is_foreign, is_restored, restore
from dltools.engine.interface import Engine, GpuAccess, LocatedContainer
from dltools.engine.limits.cpu_limits import Locator
from dltools.engine.runs import ApplyRun
from dltools.plan.realisation.settings import Settings

RUN = ApplyRun(7, 8, "dl-apply", "srtf")


@pytest.fixture
def originals(engine: Engine, journal: Journal) -> Originals:
    return Originals(engine, journal, RUN)


@pytest.fixture
def v1(tmp_path: Path) -> LocatedContainer:
    for name, text in {"cpu.cfs_quota_us": "25000", "cpu.cfs_period_us": "50000",
                       "cpu.shares": "300", "cpuset.cpus": "0-3"}.items():  # fmt: skip
        (tmp_path / name).write_text(text + "\n")
    return on_version_1(tmp_path, CpuQuota=25_000, CpuPeriod=50_000, CpuShares=300)


def test_an_entry_holds_the_record_the_settings_the_files_and_the_run(
    originals: Originals, v1: LocatedContainer
) -> None:
    entry = originals.describe(v1, "running")
    assert entry.fields == {"NanoCpus": 0, "CpuPeriod": 50_000, "CpuQuota": 25_000,
                            "CpuShares": 300, "CpusetCpus": 0}  # fmt: skip
    assert entry.settings == {"cpus": 0.5, "cpu_weight": 300.0, "cpuset": None}
    assert entry.kernel == {"cpu.cfs_quota_us": "25000", "cpu.cfs_period_us": "50000",
                            "cpu.shares": "300", "cpuset.cpus": "0-3"}  # fmt: skip
    assert (entry.engine, entry.state, entry.run) == ("FAKE", "running", RUN)
    assert entry.since.endswith("Z")


def test_the_journal_keeps_the_first_entry(
    originals: Originals, v1: LocatedContainer, journal: Journal
) -> None:
    entry = originals.describe(v1)
    assert originals.record(entry)
    assert not originals.record(originals.describe(v1))
    assert originals.changed == {entry.container_id}
    originals.forget(entry)
    assert (originals.changed, journal.entries("FAKE")) == (set(), [])


def test_of_many_changed_containers_those_that_are_gone_are_forgotten(
    originals: Originals, journal: Journal
) -> None:
    ids = [ID, *(f"{number:064x}" for number in range(98))]
    for id_ in ids:
        originals.record(Entry("FAKE", id_, "job", {}, {}, {}))
    assert originals.forget_gone() == set()
    originals.record(Entry("FAKE", "a" * 64, "job", {}, {}, {}))
    assert originals.forget_gone() == {*ids[1:], "a" * 64}
    assert [entry.container_id for entry in journal.entries("FAKE")] == [ID]
    assert originals.changed == {ID}


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (({"cpus": 0.5, "cpu_weight": 300.0},), False),
        (({"cpus": None, "cpu_weight": 300.0}, {"cpus": 0.5, "cpu_weight": 1024.0}), False),
        (({"cpus": None, "cpu_weight": 300.0}, {"cpus": 1.0, "cpu_weight": 1024.0}), True),
        ((), False),
    ],
)
def test_settings_that_runs_have_made_one_by_one_are_nobody_else_s(
    v1: LocatedContainer, ours: tuple[Settings, ...], expected: bool
) -> None:
    assert is_foreign(v1, Entry("FAKE", ID, "job", {}, {}, {}, ours=ours)) is expected


def test_a_container_that_has_not_changed_is_as_it_was(
    engine: Engine, originals: Originals, v1: LocatedContainer
) -> None:
    assert is_restored(engine, v1, originals.describe(v1))


@pytest.mark.parametrize("name", ["cpu.cfs_quota_us", "cpu.shares", "cpuset.cpus"])
def test_a_file_that_has_changed_is_noticed(
    engine: Engine, originals: Originals, v1: LocatedContainer, tmp_path: Path, name: str
) -> None:
    entry = originals.describe(v1)
    (tmp_path / name).write_text("0-1\n" if name == "cpuset.cpus" else "20000\n")
    assert not is_restored(engine, v1, entry)


@pytest.mark.parametrize(
    "record",
    [{"NanoCpus": 1}, {"CpuQuota": 30_000}, {"CpuShares": 2}, {"CpusetCpus": "1"}],
    ids=str,
)
def test_a_record_that_has_changed_is_noticed(
    engine: Engine,
    originals: Originals,
    v1: LocatedContainer,
    tmp_path: Path,
    record: dict[str, int | str],
) -> None:
    """A restart of the container would bring it about."""
    entry = originals.describe(v1)
    assert not is_restored(
        engine, on_version_1(tmp_path, **{**v1.container.limit_fields, **record}), entry
    )


def test_a_record_of_the_same_effect_is_the_same(
    engine: Engine, originals: Originals, v1: LocatedContainer, tmp_path: Path
) -> None:
    entry = originals.describe(v1)
    same = {"CpuQuota": 50_000, "CpuPeriod": 100_000, "CpuShares": 300, "CpusetCpus": "0-3"}
    assert is_restored(engine, on_version_1(tmp_path, **same), entry)


def test_on_version_2_many_shares_stand_for_one_weight(
    engine: Engine, originals: Originals, tmp_path: Path
) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu.weight").write_text("100\n")
    entry = originals.describe(on_version_2(tmp_path))
    assert is_restored(engine, on_version_2(tmp_path, CpuShares=1020), entry)


def test_a_gpu_container_without_processes_has_lost_the_change(
    engine: Engine, originals: Originals, v1: LocatedContainer, tmp_path: Path
) -> None:
    """Its files were written directly, and a restart brings about what the engine's record says."""
    entry = originals.describe(v1)
    (tmp_path / "cpu.shares").write_text("20000\n")
    assert not is_restored(engine, v1, entry)
    fragile = replace(v1, container=replace(v1.container, gpu=GpuAccess.FRAGILE))
    assert is_restored(engine, fragile, entry)


# Restoring on an engine whose containers have no visible cgroup


def entry_of(engine: Engine, journal: Journal) -> Entry:
    return Originals(engine, journal, RUN).describe(Locator(engine).find(ID))


@pytest.mark.parametrize(
    ("original", "changed"),
    [
        ({}, {"CpuPeriod": 100_000, "CpuQuota": 150_000, "CpuShares": 300}),
        ({"NanoCpus": 500_000_000}, {"NanoCpus": 1_500_000_000}),
        ({"CpuQuota": 50_000, "CpuPeriod": 20_000}, {"CpuQuota": 10_000}),
        ({"CpuShares": 512}, {"CpuShares": 2}),
        ({"CpusetCpus": "1"}, {"CpusetCpus": "0,2"}),
        ({}, {"CpusetCpus": "0,2"}),
    ],
    ids=str,
)
def test_a_container_is_restored(
    engine: Engine,
    journal: Journal,
    fake_engine: FakeEngine,
    original: dict[str, int | str],
    changed: dict[str, int | str],
) -> None:
    fake_engine.host_config |= original
    entry = entry_of(engine, journal)
    fake_engine.host_config |= changed
    located = Locator(engine).find(ID)
    assert not is_restored(engine, located, entry)
    restore(engine, located, entry)
    assert is_restored(engine, Locator(engine).find(ID), entry)


def test_a_cpu_list_that_has_not_changed_is_not_sent(
    engine: Engine, journal: Journal, fake_engine: FakeEngine
) -> None:
    fake_engine.host_config["CpusetCpus"] = "1"
    entry = entry_of(engine, journal)
    fake_engine.host_config["CpuShares"] = 2
    restore(engine, Locator(engine).find(ID), entry)
    assert "CpusetCpus" not in fake_engine.updates[-1]
