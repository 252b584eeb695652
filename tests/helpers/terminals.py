"""A terminal as a test's stage: the controlling one of what runs on it."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Sequence
from typing import Self

from helpers.tools import environment

PATIENCE_S = 60.0
"""How long to wait for what must come; no test waits that long when all is well."""


class Stage:
    """Runs a command on a terminal of 80 columns and 24 lines; `shown` is all it has printed."""

    def __init__(self, command: Sequence[str]) -> None:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            env = environment(TERM="xterm-256color", LANG="C.UTF-8", NO_COLOR="1")
            for name in ("COLUMNS", "LINES"):
                env.pop(name, None)
            os.execvpe(command[0], list(command), env)
        self.shown = ""
        self._status: int | None = None
        self.resize(80)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self._master)

    def resize(self, columns: int, lines: int = 24) -> None:
        """Give the screen another size, which the kernel tells those in the foreground."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    @property
    def echoes(self) -> bool:
        flags = termios.tcgetattr(self._master)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)

    def until(self, pattern: str, since: int = 0) -> int:
        """Wait until what is shown since a place matches; return where the match ends."""
        until = time.monotonic() + PATIENCE_S
        while not (match := re.compile(pattern, re.S).search(self.shown, since)):
            assert time.monotonic() < until, f"no {pattern!r} in {self.shown[since:]!r}"
            assert self._read(0.05) or not self._has_ended(), f"ended: {self.shown!r}"
        return match.end()

    def end(self) -> int:
        until = time.monotonic() + PATIENCE_S
        while not self._has_ended():
            assert time.monotonic() < until, f"it does not end: {self.shown!r}"
            self._read(0.05)
        while self._read(0.0):
            pass
        assert self._status is not None
        return self._status

    def _has_ended(self) -> bool:
        if self._status is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if done else None
        return self._status is not None

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


def printed(command: Sequence[str], code: int = 0) -> str:
    """Return what a command prints on a terminal. Fails where it ends with another code."""
    with Stage(command) as stage:
        assert stage.end() == code, stage.shown
        return stage.shown
