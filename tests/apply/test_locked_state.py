"""The state after a run that was killed: its last request to the engine is waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dltools.apply import locked_state as module
from dltools.apply.locked_state import SETTLING_S, locked_state


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(module.time, "sleep", found.append)
    return found


def test_an_engine_settles_after_a_run_that_was_killed(tmp_path: Path, waits: list[float]) -> None:
    (tmp_path / "apply.lock").write_text("process 1: dl-apply\n")
    with locked_state(tmp_path) as state:
        state.settle()
    assert waits == [SETTLING_S]


def test_nobody_waits_after_a_run_that_ended(tmp_path: Path, waits: list[float]) -> None:
    for _ in range(2):
        with locked_state(tmp_path) as state:
            state.settle()
    assert waits == []


def test_files_that_a_killed_run_had_begun_are_removed(tmp_path: Path) -> None:
    staged = tmp_path / "journal" / ".a.json.0123abcd"
    staged.parent.mkdir(mode=0o700)
    staged.touch(mode=0o600)
    with locked_state(tmp_path):
        assert not staged.exists()
