"""An upgrade that keeps state in another directory loses nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dltools.apply.earlier_state import move_state
from dltools.errors import RetryError
from dltools.files import locked


@pytest.fixture
def old(tmp_path: Path) -> Path:
    for folder in ("journal", "rotation"):
        (tmp_path / "old" / folder).mkdir(parents=True)
        (tmp_path / "old" / folder / "a.json").write_text(f"old {folder}")
    return tmp_path / "old"


def test_all_entries_are_moved(old: Path, tmp_path: Path) -> None:
    assert move_state(old, tmp_path / "new") == 2
    for folder in ("journal", "rotation"):
        assert (tmp_path / "new" / folder / "a.json").read_text() == f"old {folder}"
        assert list((old / folder).iterdir()) == []
    assert move_state(old, tmp_path / "new") == 0


def test_without_entries_nothing_is_created(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    assert move_state(tmp_path / "old", tmp_path / "new") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert list((tmp_path / "old").iterdir()) == []


@pytest.mark.parametrize("newer", ["old", "new"])
def test_of_two_entries_the_older_one_stays(old: Path, tmp_path: Path, newer: str) -> None:
    there = tmp_path / "new" / "journal" / "a.json"
    there.parent.mkdir(parents=True)
    there.write_text("new journal")
    os.utime(old / "journal" / "a.json", (1e9, 1e9 + (newer == "old")))
    os.utime(there, (1e9, 1e9 + (newer == "new")))
    move_state(old, tmp_path / "new")
    assert there.read_text() == ("new journal" if newer == "old" else "old journal")
    assert list((old / "journal").iterdir()) == []


def test_entries_of_a_run_that_goes_on_stay(old: Path, tmp_path: Path) -> None:
    with locked(old / "apply.lock", "dl-apply"), pytest.raises(RetryError):
        move_state(old, tmp_path / "new")
    assert (old / "journal" / "a.json").exists()
