"""Notes of containers that take turns."""

import pytest

from dltools.engine.runs import ApplyRun
from dltools.engine.turn_notes import TurnNote, TurnNotes, how_to_unpause, left_paused, read_notes
from dltools.errors import DataError


def note(engine: str = "E", id_: str = "c" * 64) -> TurnNote:
    run = ApplyRun(7, 8, "dl-apply", "srtf")
    return TurnNote(engine, "host", id_, "job", 1, 2.0, "2026-01-31T12:00:00Z", run, "GPU-1")


def test_a_note_comes_back_as_it_was(tmp_path) -> None:
    notes = TurnNotes(tmp_path / "rotation")
    notes.write(note())
    assert notes.find("c" * 64) == note()
    assert notes.find("y") is None


def test_a_damaged_note_is_refused_or_left_out(tmp_path) -> None:
    notes = TurnNotes(tmp_path / "rotation")
    notes.write(note())
    (tmp_path / "rotation" / "x.json").write_text('{"v": 1, "engine": "E"}')
    with pytest.raises(DataError, match="damaged note of a container's turns"):
        notes.find("x")
    assert list(read_notes([tmp_path], "E").values()) == [note()]


def test_notes_of_another_engine_are_left_out(tmp_path) -> None:
    for number, engine in enumerate(("E", "F")):
        TurnNotes(tmp_path / "rotation").write(note(engine, f"c{number}"))
    assert set(read_notes([tmp_path, tmp_path / "nowhere"], "E")) == {"c0"}
    assert set(read_notes([tmp_path], None)) == {"c0", "c1"}


def test_a_message_says_how_to_unpause_and_names_docker_only_for_what_it_knows() -> None:
    assert how_to_unpause(["a", "b"]) == "run dl-apply --undo, or docker unpause a b"
    assert how_to_unpause(["lab/train/main"]) == "run dl-apply --undo"
    said = how_to_unpause(["a"])
    assert said == "run dl-apply --undo, or docker unpause a"
    assert left_paused(["a"]) == f"an earlier dl-apply has left a paused; {said}"
