"""The journal: containers as they were before dl-apply first changed them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dltools.apply.journal import Entry, Journal
from dltools.engine.runs import ApplyRun
from dltools.errors import DataError, OutputError


def entry(name: str = "job", **changes: Any) -> Entry:
    values = {
        "engine": "E1",
        "container_id": (name * 64)[:64],
        "container_name": name,
        "fields": {"NanoCpus": 500_000_000},
        "settings": {"cpus": 0.5, "cpu_weight": 1024.0},
        "kernel": {"cpu.max": "50000 100000"},
    }
    return Entry(**(values | changes))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal"


@pytest.fixture
def journal(directory: Path) -> Journal:
    return Journal(directory)


def test_reading_an_empty_journal_creates_nothing(journal: Journal, directory: Path) -> None:
    assert journal.entries("E1") == []
    assert not directory.exists()


def test_entries_come_back_as_they_were(journal: Journal) -> None:
    without = entry("b", settings={"cpus": None})
    journal.add(without)
    journal.add(entry("a"))
    assert journal.entries("E1") == [entry("a"), without]


def test_entries_outlive_the_journal_object(journal: Journal, directory: Path) -> None:
    journal.add(entry())
    assert Journal(directory).entries("E1") == [entry()]


def test_what_an_earlier_run_asked_for_is_still_ours(journal: Journal) -> None:
    """It may have been killed before the engine carried it out."""
    wanted = [({"cpus": float(number)}, {"cpus": number + 0.5}) for number in range(5)]
    for ours in wanted:
        journal.add(entry(ours=ours))
    (found,) = journal.entries("E1")
    assert found.ours == (*wanted[2], *wanted[3], *wanted[4])


def test_the_first_entry_stays(journal: Journal) -> None:
    journal.add(entry())
    journal.add(entry(settings={"cpus": 0.1}))
    assert journal.entries("E1") == [entry()]


def test_a_removed_entry_can_be_added_again(journal: Journal) -> None:
    journal.add(entry())
    journal.remove(entry())
    journal.remove(entry())
    assert journal.entries("E1") == []
    changed = entry(settings={"cpus": 0.1})
    journal.add(changed)
    assert journal.entries("E1") == [changed]


def test_the_entries_of_another_engine_are_left_alone(journal: Journal) -> None:
    journal.add(entry("a", engine="E2"))
    journal.add(entry("b"))
    assert journal.entries("E1") == [entry("b")]
    assert journal.entries("E2") == [entry("a", engine="E2")]


def test_an_entry_is_whole_or_not_there(
    journal: Journal, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        journal.add(entry())
    assert list(directory.iterdir()) == []


def test_a_directory_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot create"):
        Journal(tmp_path / "file" / "journal").add(entry())


WHOLE = json.dumps({"v": 1, **dataclasses.asdict(entry())})


def changed(**changes: Any) -> str:
    record = json.loads(WHOLE) | changes
    return json.dumps({key: value for key, value in record.items() if value != "drop"})


DAMAGE = {
    "empty": "",
    "cut": WHOLE[:-9],
    "not JSON": "junk",
    "not UTF-8": b"\xff\xfe",
    "a list": "[]",
    "lists without end": "[" * 100_000,
    "a number": "7",
    "null": "null",
    "no version": changed(v="drop"),
    "another version": changed(v=2),
    "a field too few": changed(settings="drop"),
    "a field too many": changed(more=1),
    "settings of a wrong type": changed(settings=["cpus"]),
    "fields of a wrong type": changed(fields=7),
    "an id of a wrong type": changed(container_id=7),
    "a name that is no text": changed(container_name="\ud800"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_entry_is_named(journal: Journal, directory: Path, damage: str | bytes) -> None:
    directory.mkdir(parents=True)
    path = directory / "x.json"
    path.write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    with pytest.raises(DataError, match="damaged journal entry") as caught:
        journal.entries("E1")
    assert str(path) in str(caught.value)


def test_other_files_are_ignored(journal: Journal, directory: Path) -> None:
    journal.add(entry())
    (directory / ".x.json.staged").write_text("")
    (directory / "README").write_text("")
    assert journal.entries("E1") == [entry()]


def test_time_and_run_are_kept_and_may_be_missing(journal: Journal, directory: Path) -> None:
    whole = entry(since="2026-01-31T12:00:00Z", run=ApplyRun(7, 8, "dl-apply --restore", "srtf"))
    journal.add(whole)
    assert journal.entries("E1") == [whole]
    (path,) = directory.iterdir()
    data = json.loads(path.read_text())
    del data["since"], data["run"]
    path.write_text(json.dumps(data))
    assert journal.entries("E1") == [entry()]


@pytest.mark.parametrize("run", [[], "x", {"pid": "7"}, {"command": 3}])
def test_a_damaged_run_is_named(journal: Journal, directory: Path, run: object) -> None:
    journal.add(entry())
    (path,) = directory.iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run": run}))
    if run:
        with pytest.raises(DataError, match="damaged journal entry"):
            journal.entries("E1")
    else:
        assert journal.entries("E1") == [entry()]


def test_only_a_new_entry_is_new(journal: Journal) -> None:
    assert journal.add(entry())
    assert not journal.add(entry())
    assert not journal.add(entry(state="running"))


def test_what_a_run_leaves_under_lease_has_an_end(journal: Journal) -> None:
    journal.add(entry("a", leased_by=ApplyRun(7, 1)))
    journal.add(entry("b"))
    assert journal.next_end() == ""
    leased = [one for one in journal.entries("E1") if one.is_leased]
    journal.lease_until(leased, "2026-01-01T00:00:10Z")
    (found,) = [one for one in journal.entries("E1") if one.until]
    assert (found.container_name, found.leased_by.pid, found.is_leased) == ("a", 0, True)
    assert journal.next_end() == "2026-01-01T00:00:10Z"
    assert not found.has_expired("2026-01-01T00:00:09Z")
    assert found.has_expired("2026-01-01T00:00:10Z")
    journal.lease_to([found], ApplyRun(8, 2))
    taken = journal.find(found.container_id)
    assert taken is not None
    assert (taken.leased_by.pid, taken.until) == (8, "")


def test_a_change_for_good_ends_a_lease(journal: Journal) -> None:
    journal.add(entry(until="2026-01-01T00:00:10Z"))
    journal.add(entry())
    (found,) = journal.entries("E1")
    assert not found.is_leased
