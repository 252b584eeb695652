"""The container events of one engine as they come: none lost where a stream breaks, none twice.

dl-probe makes rows of them, and dl-apply learns what people do to the containers that it changes.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable

from dltools.engine.interface import Engine, Event
from dltools.threads import in_background

_REMEMBERED = 1024
"""Number of newest events by which repeated ones are recognised: four times as many as Docker
repeats."""

_OVERLAP_S = 1.0
"""Events of one moment may come in another order than their times; so much is asked for again."""

_ASKS_AGAIN_S = (0.1, 0.5, 2.0)
"""Waits before a stream that has broken is asked for again; the last one stays (ours)."""


class SeenEvents:
    """The newest events that have come from an engine."""

    def __init__(self, since: float = 0.0) -> None:
        """Begin at a time, in seconds since 1970."""
        self.known_until = since
        self._seen: deque[tuple[int, str, str, str]] = deque(maxlen=_REMEMBERED)

    @property
    def asked_since(self) -> float:
        """The time from which to ask again (s since 1970); now, after the clock was set back."""
        return min(self.known_until, time.time()) - _OVERLAP_S

    def is_new(self, event: Event) -> bool:
        """Tell whether an event comes for the first time, and remember it."""
        if event.nanos is None:
            return True
        key = (event.nanos, event.container_id, event.action or event.hand, event.hand_id)
        if key in self._seen:
            return False
        self._seen.append(key)
        self.known_until = max(self.known_until, event.nanos / 1e9)
        return True

    def times(self, container_id: str, action: str) -> list[int]:
        """Return when a container did something, of what is remembered (ns since 1970)."""
        return [key[0] for key in tuple(self._seen) if key[1:3] == (container_id, action)]


class EventFeed:
    """Follows an engine's events in a thread of its own until it is closed. The thread only queues
    them, and calls `hear` for each with no lock held; whoever is woken by that takes them."""

    def __init__(self, engine: Engine, since: float, hear: Callable[[Event], None]) -> None:
        """Follow from a time on (s since 1970, by this machine's clock)."""
        self._engine = engine
        self._hear = hear
        self._seen = SeenEvents(since)
        self._asked = since
        self._came: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        in_background(self._follow)

    def tell(self, event: Event) -> None:
        """Queue an event, and call `hear` for it. Others may tell what the engine does not."""
        self._came.put(event)
        self._hear(event)

    def take(self) -> list[Event]:
        """Return the events that have come since the last call, without waiting."""
        return [self._came.get_nowait() for _ in range(self._came.qsize())]

    def close(self) -> None:
        """Follow no longer. The thread ends with the next event, or with its connection."""
        self._is_closed.set()

    def _follow(self) -> None:
        failures = 0
        while not self._is_closed.is_set():
            try:
                for event in self._engine.events(self._asked):
                    failures = 0
                    if self._is_closed.is_set():
                        return
                    if event.container_id and self._seen.is_new(event):
                        self.tell(event)
            except Exception:  # whatever an engine says, its containers are still looked after
                failures += 1
            self._asked = max(self._asked, self._seen.asked_since)
            self._is_closed.wait(_ASKS_AGAIN_S[min(failures, len(_ASKS_AGAIN_S) - 1)])
