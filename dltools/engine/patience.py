"""A way to the Docker engine that outlives the engine's restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from dltools.engine.transport import NONE, Flow, Params, Transport
from dltools.errors import UnavailableError

PATIENCE_S = 60.0
"""How long an engine is waited for: a restart takes seconds, with many containers half a minute."""

_FIRST_S, _LONGEST_S = 0.1, 2.0


class Patient:
    """Makes each request again, ever more slowly, until the engine answers or `patience_s` have
    passed since it last did not. From then on each request fails at once, until one is answered.

    All that is asked of an engine here can be asked twice: it says what is to be, not what to add.
    """

    def __init__(
        self,
        way: Transport,
        patience_s: float = PATIENCE_S,
        waiting: Callable[[UnavailableError], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`waiting` is told why, once for each time that the engine goes away."""
        self.is_local = way.is_local
        self._way = way
        self._patience_s = patience_s
        self._waiting = waiting
        self._clock = clock
        self._sleep = sleep
        self._until: float | None = None

    def json(self, method: str, path: str, params: Params = NONE, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""
        pause = _FIRST_S
        while True:
            try:
                answer = self._way.json(method, path, params, body)
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
                self._waiting(error)
        if now >= self._until:
            raise error
        self._sleep(min(pause, self._until - now))

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; `endless` waits for ever."""
        return self._way.chunks(path, params, endless=endless)

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long, to be looked at now and then."""
        return self._way.follow(path, params)
