"""Drawing in place on a terminal: each drawing replaces the one before.

Keys and signals are handled, too. dl-probe draws its live table with it. `rich.live` would not do:
it erases a drawing by the size that the terminal had, and knows neither keys nor a process that is
stopped or in the background.
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
from typing import Any, TextIO

from rich.console import Console, RenderableType

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor
_ERASE = "\x1b[J"  # what is below the cursor
_CLEAR = "\x1b[H\x1b[2J"

_ECHO = 3
"""Index of the flags for echo and for whole lines in the list of termios."""
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)|.", re.DOTALL)
"""One key: an arrow and the like, one with Alt, or a character."""

_NAMES = {
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    **dict.fromkeys(("\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    "\x1b[5~": "pageup",
    "\x1b[6~": "pagedown",
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~"), "home"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~"), "end"),
}
"""Keys by what a terminal sends for them."""


class Screen:
    """Draws what `view` returns (None: nothing yet), each time over the drawing before.

    From `open` to `close` the terminal's keys are not echoed, and lines on standard error come
    above the drawing.
    """

    def __init__(
        self,
        console: Console,
        view: Callable[[], RenderableType | None],
        press: Callable[[str], Event | None] | None = None,
    ) -> None:
        """`press` takes a key and tells what became of it, None for nothing; by default q quits."""
        self._press = press or _quits
        self._console = console
        self._view = view
        self._terminal: Terminal | None = None
        self._rows = 0  # of the newest drawing; 0: the next one begins at the cursor
        self._size: tuple[int, int] | None = None
        self._stderr: TextIO | None = None

    def open(self) -> None:
        """Take the terminal."""
        self._terminal = Terminal(self._leave, self._enter, self._press)
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

    @property
    def is_open(self) -> bool:
        """Whether the terminal is taken."""
        return self._terminal is not None

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


class Event(Enum):
    """The end of a wait."""

    TIME = auto()
    QUIT = auto()  # q was typed
    CHANGED = auto()  # a key, another size, or the process is in the foreground again


def _quits(key: str) -> Event | None:
    return Event.QUIT if key in ("q", "Q") else None


def keys_of(typed: bytes) -> list[str]:
    """Return the keys in what a terminal has sent: characters, and names such as "up"."""
    found = _KEY.findall(typed.decode(errors="replace"))
    return [_NAMES.get(one, one) for one in found]


class Terminal:
    """Reads keys without echo where standard input is a terminal, and this process in its
    foreground.

    A process that is stopped or killed leaves the terminal as it was. `leave` is called before it
    stops, `enter` when it goes on; both must be safe at any moment.
    """

    def __init__(
        self,
        leave: Callable[[], None],
        enter: Callable[[], None],
        press: Callable[[str], Event | None] = _quits,
    ) -> None:
        """Take the terminal; `close` gives it back. `press` takes each key that is typed."""
        self._leave, self._enter, self._press = leave, enter, press
        self._keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self._found: list[Any] | None = None
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._handlers: dict[int, Any] = {}
        for number, handler in (
            (signal.SIGWINCH, self._resized),
            (signal.SIGCONT, self._continued),
            (signal.SIGTSTP, self._stopped),
            (signal.SIGHUP, self._killed),
            (signal.SIGQUIT, self._killed),
        ):
            if signal.getsignal(number) is not signal.SIG_IGN:  # for example under nohup
                self._handlers[number] = signal.signal(number, handler)
        # A signal may reach another thread; only this ends the wait of the main one then.
        self._wakeup_before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._take()

    def close(self) -> None:
        """Give the terminal back as it was found."""
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._woken)
        os.close(self._wake)

    @property
    def is_away(self) -> bool:
        """Tell whether the process is in the background, so that the screen is the shell's."""
        return self._found is not None and not self._in_foreground()

    def wait(self, seconds: float) -> Event:
        """Wait until a time has passed or something has happened."""
        until = time.monotonic() + seconds
        while True:
            sources = [self._woken]
            if self._keys is not None and self._found is not None and self._in_foreground():
                sources.append(self._keys)
            ready = select.select(sources, [], [], max(0.0, until - time.monotonic()))[0]
            if self._woken in ready:
                os.read(self._woken, 4096)
                return Event.CHANGED
            # It may have been stopped and continued in the background since it looked.
            if self._keys in ready and self._in_foreground() and (event := self._typed()):
                return event
            if not ready:
                return Event.TIME

    def _typed(self) -> Event | None:
        """Read the keys that were typed; return what came of them, None for nothing."""
        assert self._keys is not None
        try:
            typed = os.read(self._keys, 4096)
        except OSError:
            typed = b""
        if not typed:  # it has hung up
            self._keys = None
        events = {self._press(key) for key in keys_of(typed)}
        return next((one for one in (Event.QUIT, Event.CHANGED) if one in events), None)

    # The terminal's settings

    def _in_foreground(self) -> bool:
        try:
            return self._keys is not None and os.tcgetpgrp(self._keys) == os.getpgrp()
        except OSError:
            return False

    def _take(self) -> None:
        if self._keys is None or not self._in_foreground():
            return
        with contextlib.suppress(termios.error):
            if self._found is None:
                self._found = termios.tcgetattr(self._keys)
            quiet = [*self._found]
            quiet[_ECHO] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(self._keys, termios.TCSANOW, quiet)

    def _give_back(self) -> None:
        if self._keys is None or self._found is None or not self._in_foreground():
            return
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._keys, termios.TCSANOW, self._found)
            termios.tcflush(self._keys, termios.TCIFLUSH)  # keys typed here are not for the shell

    # Signals

    def _resized(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # full of wake-up calls, or closed
            os.write(self._wake, b"!")

    def _stopped(self, number: int, _: object) -> None:
        self._leave()
        self._give_back()
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # here it stops
        signal.signal(number, handler)

    def _continued(self, *_: object) -> None:
        self._take()
        self._enter()
        self._resized()

    def _killed(self, number: int, _: object) -> None:
        self._leave()
        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
