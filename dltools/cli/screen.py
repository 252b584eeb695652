"""Drawing in place on a terminal: each drawing replaces the one before, and keys are read.

dl-probe draws its live table with it, and dl-plan its plans. The terminal is the shell's again
whenever this process is stopped, in the background, or ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live

_ECHO = 3
"""Index of the flags for echo and for whole lines in the list of termios."""
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)|.", re.DOTALL)
"""One key: an arrow and the like, one with Alt, or a character."""

_NAMES = {
    **dict.fromkeys(("\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    "\x1b[5~": "pageup",
    "\x1b[6~": "pagedown",
}
"""Keys by what a terminal sends for them."""

_LOOK_S = 0.2
"""How often the size of the terminal is looked at, and whether it is this process's."""


class Event(Enum):
    """What became of a key."""

    QUIT = auto()
    CHANGED = auto()


def _quits(key: str) -> Event | None:
    return Event.QUIT if key in ("q", "Q") else None


def keys_of(typed: bytes) -> list[str]:
    """Return the keys in what a terminal has sent: characters, and names such as "up"."""
    found = _KEY.findall(typed.decode(errors="replace"))
    return [_NAMES.get(one, one) for one in found]


class Screen:
    """Draws what `view` returns (None: nothing yet), each time over the drawing before.

    From `open` to `close` the terminal's keys are not echoed, and lines on standard error come
    above the drawing.
    """

    def __init__(
        self,
        console: Console,
        view: Callable[[], RenderableType | None],
        press: Callable[[str], Event | None] = _quits,
    ) -> None:
        """`press` takes a key and tells what became of it, None for nothing; by default q quits."""
        self._console, self._view, self._press = console, view, press
        self._live: Live | None = None
        self._size = console.size
        self._keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self._found: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._is_drawing = False
        self._due: int | None = None

    def open(self) -> None:
        """Take the terminal."""
        for number in (signal.SIGTSTP, signal.SIGHUP, signal.SIGQUIT):
            if signal.getsignal(number) is not signal.SIG_IGN:  # for example under nohup
                self._handlers[number] = signal.signal(number, self._signalled)
        self._take()

    def close(self) -> None:
        """Give the terminal back, with the newest drawing left on it."""
        self._leave()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def draw(self) -> None:
        """Draw over the drawing before; where the size has changed, on an empty screen."""
        view = self._view()
        if view is None or self._is_away:
            return
        self._is_drawing = True
        try:
            if self._live is None:
                self._take()
                stderr = sys.stderr is not None and sys.stderr.isatty()
                self._live = Live(
                    console=self._console,
                    auto_refresh=False,
                    redirect_stdout=False,
                    redirect_stderr=stderr,
                    vertical_overflow="crop",
                )
                self._live.start()
            elif self._size != self._console.size:
                self._console.clear()
            self._size = self._console.size
            self._live.update(view, refresh=True)
        finally:
            self._is_drawing = False
        if self._due is not None:
            number, self._due = self._due, None
            self._signalled(number)

    def wait(self, seconds: float) -> bool:
        """Wait, redrawing when the screen has changed; tell whether q was typed."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            event = self._pressed(min(left, _LOOK_S))
            if event is Event.QUIT:
                return True
            if event or self._live is None or self._size != self._console.size:
                self.draw()
        return False

    def _pressed(self, seconds: float) -> Event | None:
        """Wait for keys, and return what became of them."""
        sources = [] if self._keys is None or self._is_away else [self._keys]
        # It may have been stopped and continued in the background while it waited.
        if not select.select(sources, [], [], seconds)[0] or self._keys is None or self._is_away:
            return None
        try:
            typed = os.read(self._keys, 4096)
        except OSError:
            typed = b""
        if not typed:  # it has hung up
            self._keys = None
        events = {self._press(key) for key in keys_of(typed)}
        return next((one for one in (Event.QUIT, Event.CHANGED) if one in events), None)

    @property
    def _is_away(self) -> bool:
        """Whether the process is in the background, so that the screen is the shell's."""
        try:
            return os.tcgetpgrp(self._console.file.fileno()) != os.getpgrp()
        except OSError:
            return False

    def _take(self) -> None:
        """Let keys come one by one, without echo."""
        if self._keys is None or self._is_away:
            return
        with contextlib.suppress(termios.error):
            self._found = self._found or termios.tcgetattr(self._keys)
            quiet = [*self._found]
            quiet[_ECHO] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(self._keys, termios.TCSANOW, quiet)

    def _leave(self) -> None:
        """Leave the terminal as it was found, with the newest drawing on it."""
        if self._is_away:
            return
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._keys is not None and self._found is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSANOW, self._found)
                termios.tcflush(self._keys, termios.TCIFLUSH)  # what was typed is not the shell's

    def _signalled(self, number: int, _: object = None) -> None:
        """Leave the terminal, and let a signal do what it does. After a stop the next drawing takes
        the terminal again."""
        if self._is_drawing:
            self._due = number
            return
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # here it stops
        signal.signal(number, self._signalled)
