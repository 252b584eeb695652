"""Ending a run in order when a signal comes."""

from __future__ import annotations

import signal

from dltools.cli.exits import Exit


class FirstSignal:
    """Ends the run at the first SIGTERM, SIGINT or SIGHUP. Later signals are ignored, so that they
    do not interrupt what is done at the end."""

    def __init__(self) -> None:
        """Handle the signals from now on."""
        self._is_armed = True
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def ignore(self) -> None:
        """Ignore all signals from now on."""
        self._is_armed = False

    def _handle(self, number: int, _frame: object) -> None:
        if not self._is_armed:
            return
        self._is_armed = False
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(Exit.TERMINATED)
