"""The terminal of a live drawing, on a terminal of the test's own."""

import os
import pty
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from dltools.cli.screen import Screen


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a terminal where keys are typed; standard input is the other end."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield master
    os.close(master)


def test_no_key_is_read_in_the_background(keyboard, monkeypatch) -> None:
    """Also where the process goes to the background while it waits: reading would stop it."""
    asked: list[bool] = []

    def is_away(_: Screen) -> bool:
        asked.append(True)
        return len(asked) > 1  # in the foreground as it begins to wait

    monkeypatch.setattr(Screen, "_is_away", property(is_away))
    screen = Screen(Console(), lambda: None)
    os.write(keyboard, b"q\n")
    assert not screen.wait(0.2)
    assert len(asked) >= 3
