"""The journal: containers as they were before dl-apply first changed them.

Original settings: recorded before a change, compared and restored.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_engine import ID
from helpers.journal_entries import journal_entry
from helpers.located_containers import on_version_1, on_version_2

from dltools.actions.settings import Settings
from dltools.apply.original_settings import Originals, foreign_settings, is_restored, restore
from dltools.engine.interface import Capabilities, Engine, LocatedContainer
from dltools.engine.journal import Entry, Journal
from dltools.engine.limits.cpu_limits import Locator
from dltools.engine.parts import SetsLimits, needed
from dltools.engine.runs import ApplyRun
from dltools.errors import DataError
from dltools.notation.limits import Limits


def entry(name: str = "job", **changes: Any) -> Entry:
    values = {
        "engine": "E1",
        "fields": {"NanoCpus": 500_000_000},
        "settings": {"cpus": 0.5, "weight": 1024.0},
        "kernel": {"cpu.max": "50000 100000"},
    }
    return journal_entry((name * 64)[:64], name, **values | changes)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal"


@pytest.fixture
def journal(directory: Path) -> Journal:
    return Journal(directory)


def test_reading_an_empty_journal_creates_nothing(journal, directory) -> None:
    assert journal.all() == []
    assert not directory.exists()


def test_entries_come_back_as_they_were(journal, directory) -> None:
    run = ApplyRun(7, 8, "dl-apply --restore", "srtf")
    without = entry("b", settings={"cpus": None}, since="2026-01-31T12:00:00Z", run=run)
    journal.add(without)
    journal.add(entry("a"))
    assert journal.all() == Journal(directory).all() == [entry("a"), without]


def test_what_an_earlier_run_asked_for_is_still_ours(journal) -> None:
    """It may have been killed before the engine carried it out."""
    wanted = [({"cpus": float(number)}, {"cpus": number + 0.5}) for number in range(5)]
    for ours in wanted:
        journal.add(entry(ours=ours))
    (found,) = journal.all()
    assert found.ours == (*wanted[2], *wanted[3], *wanted[4])


def test_the_first_entry_stays(journal) -> None:
    assert journal.add(entry())
    assert not journal.add(entry(settings={"cpus": 0.1}))
    assert journal.all() == [entry()]
    assert not journal.add(entry(state="running"))


def test_a_removed_entry_can_be_added_again(journal) -> None:
    journal.add(entry())
    journal.remove(entry())
    journal.remove(entry())
    assert journal.all() == []
    changed = entry(settings={"cpus": 0.1})
    journal.add(changed)
    assert journal.all() == [changed]


def test_a_damaged_entry_is_named(journal, directory) -> None:
    directory.mkdir(parents=True)
    (directory / "x.json").write_text('{"v": 1, "run": "x"}')
    with pytest.raises(DataError, match=f"^{directory / 'x.json'}: damaged journal entry"):
        journal.all()


def test_other_files_are_ignored(journal, directory) -> None:
    journal.add(entry())
    (directory / ".x.json.staged").write_text("")
    (directory / "README").write_text("")
    assert journal.all() == [entry()]


def test_what_a_run_leaves_under_lease_has_an_end(journal) -> None:
    journal.add(entry("a", leased_by=ApplyRun(7, 1)))
    journal.add(entry("b"))
    assert journal.next_end() == ""
    leased = [one for one in journal.all() if one.is_leased]
    journal.lease(leased, until="2026-01-01T00:00:10Z")
    (found,) = [one for one in journal.all() if one.until]
    assert (found.container_name, found.leased_by.pid, found.is_leased) == ("a", 0, True)
    assert journal.next_end() == "2026-01-01T00:00:10Z"
    assert not found.has_expired("2026-01-01T00:00:09Z")
    assert found.has_expired("2026-01-01T00:00:10Z")
    journal.lease([found], ApplyRun(8, 2))
    taken = journal.find(found.container_id)
    assert taken is not None
    assert (taken.leased_by.pid, taken.until) == (8, "")


def test_a_change_for_good_ends_a_lease(journal) -> None:
    journal.add(entry(until="2026-01-01T00:00:10Z"))
    journal.add(entry())
    (found,) = journal.all()
    assert not found.is_leased


RUN = ApplyRun(7, 8, "dl-apply", "srtf")


@pytest.fixture
def originals(engine: Engine, journal: Journal) -> Originals:
    return Originals(engine, journal, RUN)


@pytest.fixture
def v1(tmp_path: Path) -> LocatedContainer:
    for name, text in {
        "cpu.cfs_quota_us": "25000",
        "cpu.cfs_period_us": "50000",
        "cpu.shares": "300",
        "cpuset.cpus": "0-3",
    }.items():
        (tmp_path / name).write_text(text + "\n")
    return on_version_1(tmp_path, CpuQuota=25_000, CpuPeriod=50_000, CpuShares=300)


def test_an_entry_holds_the_record_the_settings_the_files_and_the_run(originals, v1) -> None:
    entry = originals.describe(v1, "running")
    assert entry.fields == {
        "NanoCpus": 0,
        "CpuPeriod": 50_000,
        "CpuQuota": 25_000,
        "CpuShares": 300,
        "CpusetCpus": 0,
    }
    assert entry.settings == {"cpus": 0.5, "weight": 300.0, "cpuset": None}
    assert entry.kernel == {
        "cpu.cfs_quota_us": "25000",
        "cpu.cfs_period_us": "50000",
        "cpu.shares": "300",
        "cpuset.cpus": "0-3",
    }
    assert (entry.engine, entry.state, entry.run) == ("FAKE", "running", RUN)
    assert entry.since.endswith("Z")


def test_the_journal_keeps_the_first_entry(originals, v1, journal) -> None:
    entry = originals.describe(v1)
    assert originals.record(entry)
    assert not originals.record(originals.describe(v1))
    assert originals.changed == {entry.container_id}
    originals.forget(entry)
    assert (originals.changed, journal.all()) == (set(), [])


def test_of_many_changed_containers_those_that_are_gone_are_forgotten(originals, journal) -> None:
    ids = [ID, *(f"{number:064x}" for number in range(98))]
    for id_ in ids:
        originals.record(journal_entry(id_))
    assert originals.forget_gone() == set()
    originals.record(journal_entry("a" * 64))
    assert originals.forget_gone() == {*ids[1:], "a" * 64}
    assert [entry.container_id for entry in journal.all()] == [ID]
    assert originals.changed == {ID}


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (({"cpus": 0.5, "weight": 300.0},), False),
        (({"cpus": None, "weight": 300.0}, {"cpus": 0.5, "weight": 1024.0}), False),
        (({"cpus": None, "weight": 300.0}, {"cpus": 1.0, "weight": 1024.0}), True),
        ((), False),
    ],
)
def test_settings_that_runs_made_one_by_one_are_nobody_else_s(engine, v1, ours, expected) -> None:
    assert bool(foreign_settings(engine, v1, journal_entry(ours=ours))) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [({}, set()), ({"weight": 1024.0}, {"weight"}), ({"weight": 300.0}, set())],
)
def test_a_change_that_failed_is_nobody_else_s(engine, v1, made, expected) -> None:
    """Its quota was put back to 0.5; its weight is 300, as it was before this run."""
    ours: tuple[Settings, ...] = ({"cpus": 0.5, "weight": 300.0}, {"cpus": 1.0, "weight": 1024.0})
    assert foreign_settings(engine, v1, journal_entry(ours=ours), [made]) == expected


@pytest.mark.parametrize("keeps", [True, False])
def test_a_restart_that_loses_settings_is_nobody_s_wish(engine, v1, keeps) -> None:
    engine.capabilities = Capabilities(keeps=keeps)
    found = journal_entry(ours=({"cpus": 1.0, "weight": 2.0},))
    original: Limits = {"cpus": 0.5, "weight": 300.0}
    assert bool(foreign_settings(engine, v1, replace(found, settings=original))) is keeps


def test_what_systemd_writes_again_is_nobody_s_wish(engine, v1) -> None:
    own = replace(v1.container, cgroup_path="/train.slice/a.scope", files_only=True)
    unit = replace(v1, container=own)
    found = journal_entry(ours=({"cpus": 1.0, "weight": 2.0},))
    original: Limits = {"cpus": 0.5, "weight": 300.0}
    assert not foreign_settings(engine, unit, replace(found, settings=original))
    others: Limits = {"cpus": 0.5, "weight": 900.0}
    assert foreign_settings(engine, unit, replace(found, settings=others)) == {"weight"}


@pytest.mark.parametrize(
    ("driver", "is_told", "foreign"),
    [("systemd", False, set()), ("systemd", True, {"cpus"}), ("cgroupfs", False, {"cpus"})],
)
def test_what_systemd_resets_is_no_wish(engine, v1, monkeypatch, driver, is_told, foreign) -> None:
    """It is in the files alone; 0.5, as it was, is there now, and this run has set 1."""
    monkeypatch.setattr(engine, "cgroup_driver", driver)
    before: Limits = {"cpus": 0.5, "weight": 300.0}
    entry = journal_entry(settings=before, ours=(before, {"cpus": 1.0, "weight": 300.0}))
    assert foreign_settings(engine, v1, entry, [entry.ours[1]], is_told=is_told) == foreign
    assert foreign_settings(engine, v1, entry) == set()
    was = replace(entry, settings={**before, "weight": 700.0})  # its owner sets what we had set
    assert foreign_settings(engine, v1, was, is_told=is_told) == ({"weight"} if is_told else set())


def test_a_container_that_has_not_changed_is_as_it_was(engine, originals, v1) -> None:
    assert is_restored(engine, v1, originals.describe(v1))


@pytest.mark.parametrize("name", ["cpu.cfs_quota_us", "cpu.shares", "cpuset.cpus"])
def test_a_file_that_has_changed_is_noticed(engine, originals, v1, tmp_path, name) -> None:
    entry = originals.describe(v1)
    (tmp_path / name).write_text("0-1\n" if name == "cpuset.cpus" else "20000\n")
    assert not is_restored(engine, v1, entry)


@pytest.mark.parametrize(
    "record",
    [{"NanoCpus": 1}, {"CpuQuota": 30_000}, {"CpuShares": 2}, {"CpusetCpus": "1"}],
    ids=str,
)
def test_a_record_that_has_changed_is_noticed(engine, originals, v1, tmp_path, record) -> None:
    """A restart of the container would bring it about."""
    entry = originals.describe(v1)
    there = on_version_1(tmp_path, **{**v1.container.limit_fields, **record})
    assert not is_restored(engine, there, entry)


def test_a_record_of_the_same_effect_is_the_same(engine, originals, v1, tmp_path) -> None:
    entry = originals.describe(v1)
    same = {"CpuQuota": 50_000, "CpuPeriod": 100_000, "CpuShares": 300, "CpusetCpus": "0-3"}
    assert is_restored(engine, on_version_1(tmp_path, **same), entry)


def test_on_version_2_many_shares_stand_for_one_weight(engine, originals, tmp_path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu.weight").write_text("100\n")
    entry = originals.describe(on_version_2(tmp_path))
    assert is_restored(engine, on_version_2(tmp_path, CpuShares=1020), entry)


def test_a_gpu_container_without_processes_lost_the_change(engine, originals, v1, tmp_path) -> None:
    """Its files were written directly, and a restart brings about what the engine's record says."""
    entry = originals.describe(v1)
    (tmp_path / "cpu.shares").write_text("20000\n")
    assert not is_restored(engine, v1, entry)
    fragile = replace(v1, cgroup=None, container=replace(v1.container, files_only=True))
    assert is_restored(engine, fragile, entry)


# Restoring on an engine whose containers have no visible cgroup


def entry_of(engine: Engine, journal: Journal) -> Entry:
    return Originals(engine, journal, RUN).describe(Locator(engine).locate_by_id(ID))


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
def test_a_container_is_restored(engine, journal, fake_engine, original, changed) -> None:
    fake_engine.host_config |= original
    entry = entry_of(engine, journal)
    fake_engine.host_config |= changed
    located = Locator(engine).locate_by_id(ID)
    assert not is_restored(engine, located, entry)
    restore(engine, located, entry)
    assert is_restored(engine, Locator(engine).locate_by_id(ID), entry)


def test_on_version_2_the_shares_are_those_that_give_the_weight(
    engine, journal, fake_engine, tmp_path, monkeypatch
) -> None:
    """The quota, of all CPUs for none, does not count: its text was never the original one."""
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu.weight").write_text("20\n")
    fake_engine.host_config |= {"CpuShares": 512}
    there = replace(on_version_2(tmp_path), container=engine.inspect(ID))
    entry = Originals(engine, journal, RUN).describe(there)
    (tmp_path / "cpu.max").write_text("200000 100000\n")
    (tmp_path / "cpu.weight").write_text("1\n")
    fake_engine.host_config |= {"CpuShares": 2}
    there = replace(there, container=engine.inspect(ID))
    sent = []

    def update(_: str, fields: dict[str, Any]) -> None:
        sent.append(fields["CpuShares"])
        (tmp_path / "cpu.weight").write_text({512: "20\n"}[fields["CpuShares"]])

    monkeypatch.setattr(needed(engine, SetsLimits), "update", update)
    restore(engine, there, entry)
    assert sent == [512]
    assert (tmp_path / "cpu.max").read_text() == "max 100000"


def test_a_cpu_list_that_has_not_changed_is_not_sent(engine, journal, fake_engine) -> None:
    fake_engine.host_config["CpusetCpus"] = "1"
    entry = entry_of(engine, journal)
    fake_engine.host_config["CpuShares"] = 2
    restore(engine, Locator(engine).locate_by_id(ID), entry)
    assert "CpusetCpus" not in fake_engine.updates[-1]
