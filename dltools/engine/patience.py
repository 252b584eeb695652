"""A transport that waits while the Docker engine restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from dltools.engine.transport import NO_PARAMS, Flow, Params, Transport
from dltools.errors import UnavailableError

PATIENCE_S = 60.0
"""How long to wait for an engine. It restarts in seconds, with many containers in half a minute."""

_FIRST_S, _LONGEST_S = 0.1, 2.0


class Patient:
    """Repeats a request, ever more slowly, until the engine answers or `patience_s` have passed
    since the first failure. After that each request fails at once, until the engine answers one.

    Every request of dltools can be repeated: it sets a state and adds nothing.
    """

    def __init__(
        self,
        transport: Transport,
        patience_s: float = PATIENCE_S,
        report_waiting: Callable[[UnavailableError], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`report_waiting` is told the reason, once for each time that the engine goes away."""
        self.is_local = transport.is_local
        self._transport = transport
        self._patience_s = patience_s
        self._report_waiting = report_waiting
        self._clock = clock
        self._sleep = sleep
        self._until: float | None = None

    def json(self, method: str, path: str, params: Params = NO_PARAMS, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""
        pause = _FIRST_S
        while True:
            try:
                answer = self._transport.json(method, path, params, body)
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
        self._sleep(min(pause, self._until - now))

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; `endless` waits for ever."""
        return self._transport.chunks(path, params, endless=endless)

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long, to be taken piece by piece."""
        return self._transport.follow(path, params)
