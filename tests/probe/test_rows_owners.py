"""The columns of what owners asked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.journal_entries import journal_entry
from helpers.scripted_engine import ScriptedEngine

from dltools.engine.cgroup import Cgroup
from dltools.engine.journal import Entry, Journal
from dltools.engine.limits.limit_updates import recorded_limits
from dltools.observations.table import Row
from dltools.probe.counters import Counters
from dltools.probe.inventory import Inventory

COLUMNS = ("owner_cpu_limit_cores", "owner_cpu_weight", "owner_cpuset")


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A cgroup of version 2, with CPUs 0-3."""
    made = tmp_path / "cgroup"
    (made / "job").mkdir(parents=True)
    for directory in (made, made / "job"):
        (directory / "cgroup.procs").write_text("1\n")
        (directory / "cpuset.cpus.effective").write_text("0-3\n")
    (made / "job" / "cpu.max").write_text("max 100000\n")
    (made / "job" / "cpu.weight").write_text("100\n")
    return made


class Sampled:
    """One container in a cgroup, sampled with dl-apply's state in a directory."""

    def __init__(self, parent: Path, state: Path, **config: Any) -> None:
        self.engine = ScriptedEngine()
        self.inventory = Inventory(self.engine, {})
        self.id = self.engine.start("job")
        self.inventory.refresh()
        watched = self.inventory.running[self.id]
        watched.cgroup, watched.gap = Cgroup({}, parent / "job"), None
        watched.container = replace(watched.container, recorded=recorded_limits(config))
        self.counters = Counters(self.engine, [state])

    def row(self) -> Row:
        return self.counters.read(self.inventory)[1]

    def asked(self) -> tuple[Any, ...]:
        row = self.row()
        return tuple(row.get(name) for name in COLUMNS)


def entry(id_: str, **settings: Any) -> Entry:
    return journal_entry(id_, settings=settings, kernel={"cpu.weight": "100"})


def test_a_container_with_the_defaults_asked_for_nothing(parent, tmp_path) -> None:
    assert Sampled(parent, tmp_path).asked() == (None, 1024.0, None)


@pytest.mark.parametrize(("steps", "shares", "asked"), [
    ("100", 0, 1024.0), ("39", 0, 1024.0), ("39", 1024, 1024.0), ("100", 1024, 1024.0),
    ("79", 2048, 2048.0), ("174", 2048, 2048.0),  # the formulas of runc
    ("79", 512, 808.96),  # the record is older than what is in force
])  # fmt: skip
def test_what_is_in_force_before_dl_apply_is_the_owner_s(
    parent, tmp_path, steps, shares, asked
) -> None:
    (parent / "job" / "cpu.max").write_text("50000 100000\n")
    (parent / "job" / "cpu.weight").write_text(f"{steps}\n")
    (parent / "job" / "cpuset.cpus.effective").write_text("1\n")
    found = Sampled(parent, tmp_path, CpuShares=shares).asked()
    assert found == (0.5, pytest.approx(asked), "1")


def test_cpus_that_the_cgroup_above_leaves_are_no_wish(parent, tmp_path) -> None:
    for directory in (parent, parent / "job"):
        (directory / "cpuset.cpus.effective").write_text("1\n")
    assert Sampled(parent, tmp_path).asked()[2] is None


def test_the_journal_goes_before_what_is_in_force(parent, tmp_path) -> None:
    (parent / "job" / "cpu.max").write_text("10000 100000\n")
    (parent / "job" / "cpu.weight").write_text("1\n")
    (parent / "job" / "cpuset.cpus.effective").write_text("1\n")
    sampled = Sampled(parent, tmp_path)
    journal = Journal(tmp_path / "journal")
    theirs = entry(sampled.id, cpus=0.5, weight=1024.0, cpuset="0-1")
    journal.add(theirs)
    assert sampled.asked() == (0.5, 1024.0, "0-1")
    journal.remove(theirs)
    assert sampled.asked() == (pytest.approx(0.1), 10.24, "1")


@pytest.mark.parametrize("late", ["added", "removed"])
def test_a_change_while_a_sample_is_taken_makes_nothing_ours_the_owner_s(
    parent, tmp_path, late, monkeypatch
) -> None:
    """dl-apply journals a container and changes it, or puts it back, between two looks."""
    (parent / "job" / "cpu.max").write_text("10000 100000\n")
    sampled, journal = Sampled(parent, tmp_path), Journal(tmp_path / "journal")
    theirs = entry(sampled.id, cpus=0.5, weight=1024.0, cpuset=None)
    if late == "removed":
        journal.add(theirs)
    read = Counters._container_row

    def change(*arguments: Any) -> Row:
        journal.add(theirs) if late == "added" else journal.remove(theirs)
        return read(*arguments)

    monkeypatch.setattr(Counters, "_container_row", change)
    assert sampled.asked() == (0.5, 1024.0, None)


def test_what_cannot_be_read_is_a_gap_and_null(parent, tmp_path) -> None:
    sampled = Sampled(parent, tmp_path)
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / f"{sampled.id}.json").write_text("{")
    row = sampled.row()
    assert not any(name in row for name in COLUMNS)
    assert row["gap"].startswith(
        f"its owner's limits: {tmp_path}/journal/{sampled.id}.json: damaged"
    )


def test_a_container_that_has_just_ended_tells_nothing(parent, tmp_path) -> None:
    sampled = Sampled(parent, tmp_path)
    for name in ("cpu.max", "cpu.weight"):
        (parent / "job" / name).unlink()
    assert sampled.asked() == (None, None, None)
