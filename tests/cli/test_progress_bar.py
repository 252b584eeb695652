"""Bars on standard error: after a while, on a terminal, and not with --quiet."""

import io
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from dltools.cli import remarks
from dltools.cli.progress_bar import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Terminal]]:
    """Make standard error a terminal; pytest changes it between a fixture and its test."""

    def make() -> Terminal:
        monkeypatch.setattr(sys, "stderr", made := Terminal())
        return made

    monkeypatch.setenv("TERM", "xterm")
    yield make
    remarks.be_quiet(False)


def work(seconds: float, after_s: float = 0.05) -> None:
    with ProgressBar("simulating", 4, after_s) as bar:
        for _ in bar.each(range(4)):
            time.sleep(seconds / 4)


def test_long_work_shows_a_bar_and_takes_it_away(terminal: Callable[[], Terminal]) -> None:
    screen = terminal()
    work(0.5)
    shown = screen.getvalue()
    assert "simulating" in shown
    assert "%" in shown
    assert shown.endswith("\x1b[2K")


def test_short_work_shows_none(terminal) -> None:
    screen = terminal()
    work(0.05, after_s=2.0)
    assert screen.getvalue() == ""


def test_quiet_shows_none(terminal) -> None:
    screen = terminal()
    remarks.be_quiet(True)
    work(0.3)
    assert screen.getvalue() == ""


def test_no_terminal_shows_none(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", made := io.StringIO())
    work(0.3)
    assert made.getvalue() == ""
