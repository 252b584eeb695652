"""An upgrade that keeps state elsewhere loses nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dltools.apply.adoption import adopt
from dltools.errors import RetryError
from dltools.files import locked


@pytest.fixture
def old(tmp_path: Path) -> Path:
    for folder in ("journal", "rotation"):
        (tmp_path / "old" / folder).mkdir(parents=True)
        (tmp_path / "old" / folder / "a.json").write_text(f"old {folder}")
    return tmp_path / "old"


def test_all_entries_are_brought(old: Path, tmp_path: Path) -> None:
    assert adopt(tmp_path / "new", old) == 2
    for folder in ("journal", "rotation"):
        assert (tmp_path / "new" / folder / "a.json").read_text() == f"old {folder}"
        assert list((old / folder).iterdir()) == []
    assert adopt(tmp_path / "new", old) == 0


def test_nothing_to_bring_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    assert adopt(tmp_path / "new", tmp_path / "old") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert list((tmp_path / "old").iterdir()) == []


@pytest.mark.parametrize("newer", ["old", "new"])
def test_of_two_entries_the_older_one_stays(old: Path, tmp_path: Path, newer: str) -> None:
    there = tmp_path / "new" / "journal" / "a.json"
    there.parent.mkdir(parents=True)
    there.write_text("new journal")
    os.utime(old / "journal" / "a.json", (1e9, 1e9 + (newer == "old")))
    os.utime(there, (1e9, 1e9 + (newer == "new")))
    adopt(tmp_path / "new", old)
    assert there.read_text() == ("new journal" if newer == "old" else "old journal")
    assert list((old / "journal").iterdir()) == []


def test_what_a_run_of_the_earlier_version_holds_stays(old: Path, tmp_path: Path) -> None:
    with locked(old / "apply.lock", "dl-apply"), pytest.raises(RetryError):
        adopt(tmp_path / "new", old)
    assert (old / "journal" / "a.json").exists()
