"""What a person is told: lines to type, remarks, bars of long work."""

import io
import sys
from pathlib import Path

import pytest

from dltools.cli import remarks
from dltools.cli.remarks import Remarks, as_root, tracked


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


def test_a_tool_that_sudo_does_not_find_has_one(place, monkeypatch) -> None:
    monkeypatch.setenv("PATH", f"{place.parent}:/usr/bin:/bin")
    assert as_root("dl-apply", "--undo") == f"sudo {place} --undo"


def test_a_tool_that_was_called_by_its_path_has_that(place, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(place)])
    assert as_root("dl-apply") == f"sudo {place}"


class Told:
    """Remarks on a clock of its own, and what they have told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.lines = 0.0, list[str]()
        monkeypatch.setattr(remarks, "print_message", self.lines.append)
        self.remarks = Remarks(lambda: self.now)

    def tell(self, at: float, remark: str) -> None:
        self.now = at
        self.remarks.tell(remark)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(monkeypatch)


def test_the_first_remark_is_told_at_once_and_others_that_pass_are_not(told) -> None:
    for at, remark in enumerate(["no progress yet", "one job", "no round is due", "as planned"]):
        told.tell(2.0 * at, remark)
    assert told.lines == ["no progress yet"]


def test_a_remark_that_stands_is_told_once(told) -> None:
    told.tell(0.0, "no progress yet")
    for at in range(1, 40):
        told.tell(float(at), f"2 jobs, {at} of 10")
    assert told.lines == ["no progress yet", "2 jobs, 11 of 10"]


def test_what_comes_between_makes_a_remark_stand_anew(told) -> None:
    told.tell(0.0, "first")
    for at in range(1, 40):
        told.tell(float(at), "second" if at % 8 else "")
    assert told.lines == ["first"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def tracked_on(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO) -> str:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(tracked("simulating", iter("abc"), 3)) == ["a", "b", "c"]
    return stderr.getvalue()


def test_work_shows_a_bar_on_a_terminal_and_takes_it_away(monkeypatch) -> None:
    shown = tracked_on(monkeypatch, Terminal())
    assert "simulating" in shown
    assert shown.endswith("\x1b[2K")


def test_no_terminal_and_no_quiet_run_shows_a_bar(monkeypatch) -> None:
    assert tracked_on(monkeypatch, io.StringIO()) == ""
    monkeypatch.setattr(remarks, "_quiet", True)
    assert tracked_on(monkeypatch, Terminal()) == ""
