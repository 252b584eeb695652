"""Waiting: for an engine's answer, for one that has gone away, as one does that restarts, and for
what is to come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from dltools.errors import UnavailableError

PATIENCE_S = 60.0
"""How long to wait for an engine. It restarts in seconds, with many containers in half a minute."""

TIMEOUT_S = 30.0
"""How long an engine may take to answer a request."""

LOG_TIMEOUT_S = 10.0
"""How long a part of a log may take to come, and all of it."""

_FIRST_S, _LONGEST_S = 0.1, 2.0

T = TypeVar("T")


def comes_true(is_so: Callable[[], bool], within_s: float, every_s: float) -> bool:
    """Wait until something is so, but for no longer than this; tell whether it is. It is looked at
    so often (s)."""
    until = time.monotonic() + within_s
    while not (came_true := is_so()) and time.monotonic() < until:
        time.sleep(every_s)
    return came_true


class Patience:
    """Repeats a request, ever more slowly, until the engine answers or `patience_s` have passed
    since the first failure. After that each request fails at once, until the engine answers one.

    Every request of dltools can be repeated: it sets a state and adds nothing.
    """

    def __init__(
        self,
        patience_s: float = PATIENCE_S,
        report_waiting: Callable[[UnavailableError], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`report_waiting` is told the reason, once for each time that the engine goes away."""
        self.repeats = 0
        """How many requests have been made again: each may have been carried out twice."""
        self._patience_s = patience_s
        self._report_waiting = report_waiting
        self._clock = clock
        self._sleep = sleep
        self._until: float | None = None

    def repeat(self, ask: Callable[[], T]) -> T:
        """Return what a request answers. Raises `UnavailableError` when patience is over."""
        pause = _FIRST_S
        while True:
            try:
                answer = ask()
            except UnavailableError as error:
                self._wait(pause, error)
                pause = min(2 * pause, _LONGEST_S)
            else:
                self._until = None
                return answer

    def _wait(self, pause: float, error: UnavailableError) -> None:
        now = self._clock()
        if self._until is None:
            self._until = now + self._patience_s
            if self._patience_s > 0:
                self._report_waiting(error)
        if now >= self._until:
            raise error
        self.repeats += 1
        self._sleep(min(pause, self._until - now))
