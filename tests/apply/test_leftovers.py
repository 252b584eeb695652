"""Containers that a killed run has left paused are unpaused."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.fake_engine import ID, NAME, FakeEngine

from dltools.apply.leftovers import Leftover, unpause_leftovers
from dltools.apply.rotation import TurnNotes
from dltools.apply.turn_order import Turn
from dltools.engine.interface import Engine
from dltools.engine.runs import ApplyRun
from dltools.errors import DataError

TURN = Turn(ID, NAME, 0, 2.0)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "rotation"


@pytest.fixture
def noted(engine: Engine, directory: Path) -> Path:
    """The file of a container that takes turns."""
    TurnNotes(directory, engine.id).write(TURN, ApplyRun())
    return directory / f"{ID}.json"


def test_a_paused_container_is_unpaused(
    engine: Engine, fake_engine: FakeEngine, directory: Path, noted: Path
) -> None:
    fake_engine.state = "paused"
    assert list(unpause_leftovers(engine, directory)) == [Leftover(NAME)]
    assert fake_engine.state == "running"
    assert not noted.exists()


@pytest.mark.parametrize("state", ["running", "exited"])
def test_one_that_is_not_paused_is_not_told(
    engine: Engine, fake_engine: FakeEngine, directory: Path, noted: Path, state: str
) -> None:
    fake_engine.state = state
    assert list(unpause_leftovers(engine, directory)) == []
    assert (fake_engine.state, noted.exists()) == (state, False)


def test_a_refusal_is_told_and_the_file_stays(
    engine: Engine, fake_engine: FakeEngine, directory: Path, noted: Path
) -> None:
    fake_engine.state = "paused"
    fake_engine.faults["POST /unpause"] = 500
    assert list(unpause_leftovers(engine, directory)) == [Leftover(NAME, "status 500 on demand")]
    assert noted.exists()


def test_files_of_another_engine_are_left_alone(
    engine: Engine, fake_engine: FakeEngine, directory: Path
) -> None:
    TurnNotes(directory, "OTHER").write(TURN, ApplyRun())
    fake_engine.state = "paused"
    assert list(unpause_leftovers(engine, directory)) == []
    assert fake_engine.state == "paused"


def test_a_damaged_file_is_named(engine: Engine, directory: Path) -> None:
    directory.mkdir()
    (directory / "x.json").write_text("junk")
    with pytest.raises(DataError, match=r"x\.json: damaged note"):
        list(unpause_leftovers(engine, directory))
