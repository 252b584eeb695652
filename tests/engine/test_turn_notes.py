"""Notes of containers that take turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from dltools.engine.runs import ApplyRun
from dltools.engine.state_folder import StateFolder
from dltools.engine.turn_notes import (
    TurnNote,
    how_to_unpause,
    left_paused,
    listed,
    read_note,
    read_notes,
)
from dltools.errors import DataError


def test_a_note_comes_back_as_it_was(tmp_path: Path) -> None:
    note = TurnNote(
        "E", "c" * 64, "job", 1, 2.0, "2026-01-31T12:00:00Z", ApplyRun(7, 8, "dl-apply", "srtf"),
        "host", "GPU-1",
    )  # fmt: skip
    (tmp_path / "x.json").write_bytes(note.to_json())
    assert read_note(StateFolder(tmp_path), "x.json") == note
    assert read_note(StateFolder(tmp_path), "y.json") is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"engine":"E"}', "3", "null", '["E", "c1", "job"]']
)
def test_a_damaged_note_is_refused_or_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "rotation").mkdir()
    path = tmp_path / "rotation" / "x.json"
    path.write_text(text)
    with pytest.raises(DataError, match="damaged"):
        read_note(StateFolder(path.parent), "x.json")
    assert read_notes([tmp_path], "E") == {}


def test_notes_of_another_engine_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "rotation").mkdir()
    for number, engine in enumerate(("E", "F")):
        note = TurnNote(engine, f"c{number}", "job")
        (tmp_path / "rotation" / f"c{number}.json").write_bytes(note.to_json())
    assert set(read_notes([tmp_path, tmp_path / "nowhere"], "E")) == {"c0"}


def test_a_message_names_a_few_containers() -> None:
    assert listed(["a"]) == "a"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert how_to_unpause(["a", "b"]) == "run dl-apply --undo, or docker unpause a b"
    assert left_paused(["a"]) == (
        "an earlier dl-apply has left a paused; run dl-apply --undo, or docker unpause a"
    )
