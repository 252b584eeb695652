"""What a person is told to type."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dltools.cli.remarks import as_root


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that sudo does not search, with dl-apply in it."""
    tool = tmp_path / "dl-apply"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["dl-plan"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tool


@pytest.mark.usefixtures("place")
def test_a_tool_that_sudo_finds_has_no_path() -> None:
    assert as_root("dl-apply", "--undo") == "sudo dl-apply --undo"  # not there: nothing is known
    assert as_root("env") == "sudo env"


def test_a_tool_that_sudo_does_not_find_has_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{place.parent}:/usr/bin:/bin")
    assert as_root("dl-apply", "--undo") == f"sudo {place} --undo"


def test_a_tool_that_was_called_by_its_path_has_that(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(place)])
    assert as_root("dl-apply") == f"sudo {place}"
