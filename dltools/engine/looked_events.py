"""What happens to containers whose engine does not tell, found by looking again and again.

It is told by comparing what there is with what there was a second before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dltools.engine.interface import Event

LOOKS_EVERY_S = 1.0
"""How often to look (ours): a list takes a millisecond."""

_OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True, slots=True)
class Life:
    """When a container started and ended (ns since 1970, 0: not yet), with its exit code and the
    reason that its engine gives. `is_paused` is None where that is not looked at."""

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
        if self.started and not (before and before.started == self.started):
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
"""All containers of an engine by id, those that have ended too."""


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


def watch(look: Callable[[Lives], Lives], since: float) -> Iterator[Event]:
    """Yield events from a time on (seconds since 1970), for ever. `look` returns all containers,
    given those known before. Raises as `look` does."""
    known = look({})
    yield from past(known, since)
    while True:
        time.sleep(LOOKS_EVERY_S)
        found = look(known)
        yield from changes(known, found)
        known = found
