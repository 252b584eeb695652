"""The terminal of a live drawing, on a terminal of the test's own."""

import os
import pty
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from dltools.cli.screen import Event, Terminal


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

    def is_in_foreground() -> bool:
        asked.append(True)
        return len(asked) <= 2  # as it takes the terminal, and as it begins to wait

    terminal = Terminal(lambda: None, lambda: None)
    try:
        monkeypatch.setattr(terminal, "_in_foreground", is_in_foreground)
        terminal._take()
        os.write(keyboard, b"q")
        assert terminal.wait(0.2) is Event.TIME
        assert len(asked) >= 3
    finally:
        terminal.close()


def test_a_signal_that_another_thread_gets_ends_the_wait(keyboard) -> None:
    del keyboard
    done = threading.Event()
    other = threading.Thread(target=done.wait, args=(60.0,))
    terminal = Terminal(lambda: None, lambda: None)
    other.start()
    assert other.ident is not None
    timer = threading.Timer(0.1, signal.pthread_kill, (other.ident, signal.SIGWINCH))
    timer.start()
    try:
        assert terminal.wait(30.0) is Event.CHANGED
    finally:
        done.set()
        terminal.close()
        timer.join()
        other.join()
