"""Where state is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dltools.engine import state_directory


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
    assert state_directory.all_directories(tmp_path / "asked")[0] == tmp_path / "asked"
    assert list(tmp_path.iterdir()) == []
