"""What happens to the containers of a node: by its runtime's events, where it has them, else by
looking again.

An event of CRI only says that it is time to look: what has happened is told by comparing, the same
way for a runtime with events and for one without, and after a stream has broken. In CRI a container
starts once and ends once; one that kubelet starts again is another container.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dltools.engine.interface import Event

LOOKS_EVERY_S = 1.0
"""How often to look where no event says when (ours): a list takes a millisecond."""

_LOOKS_AT_LEAST_EVERY_S = 10.0
"""How often to look where events say when: one may be lost."""

_LISTENS_AGAIN_S = 30.0
"""How long after the stream of events has broken to ask for it again (ours)."""

_OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True, slots=True)
class Life:
    """When a container started and ended (ns since 1970, 0: not yet), with its exit code and the
    reason that the runtime gives. `is_paused` is None where that is not looked at."""

    id: str
    name: str
    started: int = 0
    finished: int = 0
    exit_code: int | None = None
    reason: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    is_paused: bool | None = None

    def events(self, before: Life | None) -> Iterator[Event]:
        """Yield what has happened since it was `before`, None for a container that is new."""
        if self.started and not (before and before.started):
            yield self._event("start", self.started)
        if self.finished and not (before and before.finished):
            if self.reason == _OUT_OF_MEMORY:
                yield self._event("oom", self.finished)
            yield self._event("exit", self.finished, self.exit_code)

        elif before and not self.finished and bool(self.is_paused) != bool(before.is_paused):
            action = "pause" if self.is_paused else "unpause"
            yield Event(self.id, self.name, action, datetime.now(UTC), None, None, self.labels)

    def removal(self) -> Iterator[Event]:
        """Yield what has happened to a container that is gone."""
        now = datetime.now(UTC)
        if self.started and not self.finished:
            yield Event(self.id, self.name, "exit", now, None, None, self.labels)
        yield Event(self.id, self.name, "remove", now, None, None, self.labels)

    def _event(self, action: str, nanos: int, exit_code: int | None = None) -> Event:
        at = datetime.fromtimestamp(nanos / 1e9, UTC)
        return Event(self.id, self.name, action, at, nanos, exit_code, self.labels)


Lives = Mapping[str, Life]
"""All containers of a node by id, those that have ended too."""


def changes(before: Lives, now: Lives) -> list[Event]:
    """Return what has happened between two looks, in order of time."""
    found = [event for id_, life in now.items() for event in life.events(before.get(id_))]
    gone = [event for id_, life in before.items() if id_ not in now for event in life.removal()]
    return sorted(found, key=lambda event: event.time) + gone


def past(now: Lives, since: float, until: float = float("inf")) -> list[Event]:
    """Return the events between two times (seconds since 1970) that the containers tell which are
    still there."""
    return [
        event
        for event in changes({}, now)
        if event.nanos is not None and since <= event.nanos / 1e9 <= until
    ]


def watch(
    look: Callable[[Lives], Lives],
    listen: Callable[[], Iterator[object]] | None,
    since: float,
    looks_every_s: float = LOOKS_EVERY_S,
) -> Iterator[Event]:
    """Yield events from a time on (seconds since 1970), for ever. `look` returns all containers,
    given those known before; `listen` yields whenever something happens, None where the runtime
    cannot. Raises as `look` does."""
    bell = _Bell(listen)
    known = look({})
    yield from past(known, since)
    while True:
        # No event of CRI tells of a pause.
        is_deaf = any(life.is_paused is not None for life in known.values())
        bell.wait(looks_every_s, _LOOKS_AT_LEAST_EVERY_S if not is_deaf else looks_every_s)
        found = look(known)
        yield from changes(known, found)
        known = found


class _Bell:
    """Rings when the runtime says that something has happened."""

    def __init__(self, listen: Callable[[], Iterator[object]] | None) -> None:
        self._listen = listen
        self._rings = threading.Event()
        self._hears = False
        self._broke = -_LISTENS_AGAIN_S

    def wait(self, looks_every_s: float, with_events_every_s: float) -> None:
        """Wait until it rings, but so long at most: without events, and with them."""
        if self._listen and not self._hears and time.monotonic() >= self._broke + _LISTENS_AGAIN_S:
            self._hears = True
            threading.Thread(target=self._hear, args=(self._listen,), daemon=True).start()
        self._rings.wait(with_events_every_s if self._hears else looks_every_s)
        self._rings.clear()

    def _hear(self, listen: Callable[[], Iterator[object]]) -> None:
        with suppress(Exception):  # whatever a runtime says, it is asked again later
            for _ in listen():
                self._rings.set()
        self._broke = time.monotonic()
        self._hears = False
        self._rings.set()
