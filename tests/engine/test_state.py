"""Where state is kept, and who holds what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dltools.engine import state_directory
from dltools.engine.pauses import Note, Run, load, notes
from dltools.errors import DataError


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home and a system's place for state that are nobody's."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(state_directory, "SYSTEM", tmp_path / "system")
    return tmp_path / "home"


def as_user(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)


@pytest.mark.parametrize("value", [None, "", "state", "./state", "~/state"])
def test_root_has_one_place_whatever_its_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    as_user(monkeypatch, 0)
    if value is not None:
        monkeypatch.setenv("XDG_STATE_HOME", value)
    assert state_directory.directory() == tmp_path / "system"
    monkeypatch.setenv("HOME", "/home/ada")
    assert state_directory.directory() == tmp_path / "system"


def test_anybody_else_s_is_at_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    as_user(monkeypatch, 1000)
    assert state_directory.directory() == home / ".local" / "state" / "dltools"


@pytest.mark.parametrize("uid", [0, 1000])
def test_xdg_and_what_is_asked_for_win(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    as_user(monkeypatch, uid)
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert state_directory.directory() == Path("/var/state/dltools")
    assert state_directory.directory(Path("/else/where")) == Path("/else/where")
    assert state_directory.directory(Path("here")) == Path.cwd() / "here"


def test_asking_makes_no_directory(tmp_path: Path) -> None:
    assert state_directory.places(tmp_path / "asked")[0] == tmp_path / "asked"
    assert list(tmp_path.iterdir()) == []


def test_root_s_earlier_place_is_known_where_it_is_there(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    as_user(monkeypatch, 0)
    assert state_directory.earlier() is None
    old = home / ".local" / "state" / "dltools"
    old.mkdir(parents=True)
    assert state_directory.earlier() == old
    assert state_directory.earlier(Path("/asked")) is None
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert state_directory.earlier() is None
    as_user(monkeypatch, 1000)
    assert state_directory.earlier() is None


# Who holds what


def test_a_run_lives_as_long_as_its_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    code = f"from dltools.engine.pauses import _began; print(_began({child.pid}))"
    began = int(subprocess.check_output([sys.executable, "-c", code]))
    run = Run(child.pid, began)
    assert run.alive
    assert not Run(child.pid, began + 1).alive  # another process with its number
    child.communicate()
    assert not run.alive
    assert Run.this("dl-apply").alive
    assert not Run().alive


def test_a_note_comes_back_as_it_was(tmp_path: Path) -> None:
    note = Note("E", "c" * 64, "job", 1, 2.0, "2026-01-31T12:00:00Z", Run(7, 8, "dl-apply", "srtf"))
    (tmp_path / "x.json").write_bytes(note.dump())
    assert load(tmp_path / "x.json") == note


def test_a_note_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('["E", "c1", "job"]')
    assert load(tmp_path / "x.json") == Note("E", "c1", "job")
    assert not load(tmp_path / "x.json").run.alive


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"engine":"E"}', "3", "null"])
def test_a_damaged_note_is_said_or_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "rotation").mkdir()
    path = tmp_path / "rotation" / "x.json"
    path.write_text(text)
    with pytest.raises(DataError, match="damaged"):
        load(path)
    assert notes([tmp_path], "E") == {}


def test_notes_of_another_engine_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "rotation").mkdir()
    for number, engine in enumerate(("E", "F")):
        note = Note(engine, f"c{number}", "job")
        (tmp_path / "rotation" / f"c{number}.json").write_bytes(note.dump())
    assert set(notes([tmp_path, tmp_path / "nowhere"], "E")) == {"c0"}
