"""Drawing in place on a terminal: each drawing replaces the one before."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console, RenderableType

from dltools.cli.terminal import Event, Terminal

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor
_ERASE = "\x1b[J"  # what is below the cursor
_CLEAR = "\x1b[H\x1b[2J"


class Screen:
    """Draws what `view` returns (None: nothing yet), each time over the drawing before.

    From `open` to `close` the terminal's keys are not echoed, and lines on standard error come
    above the drawing.
    """

    def __init__(self, console: Console, view: Callable[[], RenderableType | None]) -> None:
        self._console = console
        self._view = view
        self._terminal: Terminal | None = None
        self._rows = 0  # of the newest drawing; 0: the next one begins at the cursor
        self._size: tuple[int, int] | None = None
        self._stderr: TextIO | None = None

    def open(self) -> None:
        """Take the terminal."""
        self._terminal = Terminal(self._leave, self._enter)
        if sys.stderr is not None and sys.stderr.isatty():
            self._stderr = sys.stderr
            sys.stderr = _Above(self, sys.stderr)
        self._enter()

    def close(self) -> None:
        """Give the terminal back, with the newest drawing left on it."""
        if self._terminal is None:
            return
        if self._stderr is not None:
            sys.stderr = self._stderr
        terminal, self._terminal = self._terminal, None
        try:
            if not terminal.is_away:
                self._leave()
        finally:
            terminal.close()

    def draw(self) -> None:
        """Draw over the drawing before; where the size has changed, on an empty screen."""
        view = self._view()
        if view is None or (self._terminal is not None and self._terminal.is_away):
            return
        size = (self._console.width, self._console.height)
        start = _CLEAR if self._size not in (None, size) else self.erasure()
        with self._console.capture() as captured:
            self._console.print(view, end="")
        lines = captured.get().rstrip("\n").split("\n")[: max(1, size[1] - 1)]
        self._rows, self._size = len(lines), size
        self._put(start + "\n".join(lines))

    def wait(self, seconds: float) -> bool:
        """Wait, redrawing when the screen has changed; tell whether q was typed."""
        if self._terminal is None:
            time.sleep(max(0.0, seconds))
            return False
        until = time.monotonic() + seconds
        while (event := self._terminal.wait(until - time.monotonic())) is Event.CHANGED:
            self.draw()
        return event is Event.QUIT

    def erasure(self) -> str:
        """Return the codes that erase the newest drawing and put the cursor where it began."""
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return f"{up}\r{_ERASE}" if self._rows else ""

    def begin_anew(self) -> None:
        """Let the next drawing begin where the cursor is."""
        self._rows = 0

    def _put(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()

    # Signal handlers call these two, also while a drawing is written: they use no buffer.

    def _leave(self) -> None:
        """Show the cursor, below the drawing."""
        _write(_SHOW + ("\n" if self._rows else ""))
        self._rows = 0

    def _enter(self) -> None:
        self._rows = 0
        if self._terminal is None or not self._terminal.is_away:
            _write(_HIDE)


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal has gone
        os.write(sys.stdout.fileno(), text.encode())


class _Above:
    """Standard error beside a drawing: whole lines, put above it."""

    def __init__(self, screen: Screen, file: TextIO) -> None:
        self._screen = screen
        self._file = file
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._file.write(self._screen.erasure() + "".join(f"{line}\n" for line in lines))
            self._file.flush()
            self._screen.begin_anew()
            self._screen.draw()
        return len(text)

    def flush(self) -> None:
        self._file.flush()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()
