"""Files that name the containers that take turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from dltools.apply import turn_files
from dltools.apply.turn import Turn
from dltools.apply.turn_files import TurnFiles
from dltools.engine.runs import ApplyRun
from dltools.engine.state_folder import StateFolder
from dltools.engine.turn_notes import TurnNote, read_note
from dltools.errors import OutputError

TURN = Turn("c1", "job", 0, 2.0)
RUN = ApplyRun(7, 8, "dl-apply", "srtf")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["first", "second"])
    monkeypatch.setattr(turn_files, "timestamp", lambda: next(times))


def noted(folder: Path) -> TurnNote:
    note = read_note(StateFolder(folder), "c1.json")
    assert note is not None
    return note


@pytest.mark.usefixtures("clock")
def test_a_new_turn_keeps_the_time_of_the_first(tmp_path: Path) -> None:
    files = TurnFiles(tmp_path, "E")
    files.write(TURN, RUN)
    files.write(Turn("c1", "job", 1, 3.0), RUN)
    note = noted(tmp_path)
    assert (note.group, note.seconds, note.since, note.run) == (1, 3.0, "first", RUN)
    files.remove("c1")
    files.write(TURN, RUN)
    assert noted(tmp_path).since == "second"


def test_a_turn_that_is_known_is_not_written_again(tmp_path: Path) -> None:
    files = TurnFiles(tmp_path, "E")
    files.write(TURN, RUN)
    (tmp_path / "c1.json").unlink()
    files.write(TURN, RUN)
    assert list(tmp_path.iterdir()) == []


def test_removing_twice_is_removing_once(tmp_path: Path) -> None:
    files = TurnFiles(tmp_path, "E")
    files.write(TURN, RUN)
    files.remove("c1")
    files.remove("c1")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot create"):
        TurnFiles(tmp_path / "file" / "rotation", "E").write(TURN, RUN)
