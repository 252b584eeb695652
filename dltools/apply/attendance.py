"""At which containers somebody is at work.

The engine's events tell of commands that are run in a container, of signals and of whoever attaches
to it; the kernel tells of pauses before they are done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

from dltools.apply.own_settings import OwnSettings
from dltools.apply.turns import Rotation
from dltools.engine.event_feed import EventFeed
from dltools.engine.freeze_watch import FreezeWatch
from dltools.engine.interface import Engine, Event, LocatedContainer

LASTS_S: Mapping[str, float] = {"enter": 60.0, "attach": 10.0, "signal": 600.0, "freeze": 5.0}
"""How long somebody counts as being at work at most (ours): a command that goes on trains, and is
part of the job; nobody says when one who attaches has left; a stop may be given minutes to save;
a pause takes milliseconds."""


class Attendance:
    """At which containers somebody is, and until when at the latest. Times are arguments (s)."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}

    def note(self, event: Event, now: float) -> None:
        """Take note of an event."""
        id_ = event.container_id
        if event.action in ("start", "exit", "remove"):
            self._until = {key: at for key, at in self._until.items() if key[0] != id_}
        elif event.hand == "leave":
            self._until.pop((id_, event.hand_id), None)
        elif event.action == "pause":
            self._until.pop((id_, "freeze"), None)
        elif event.hand:
            self._until[id_, event.hand_id or event.hand] = now + LASTS_S[event.hand]

    def attended(self, now: float) -> frozenset[str]:
        """Return the ids of the containers at which somebody is."""
        self._until = {key: at for key, at in self._until.items() if at > now}
        return frozenset(id_ for id_, _ in self._until)

    def next_end(self) -> float | None:
        """Return when somebody has been there for long enough, None if nobody is."""
        return min(self._until.values(), default=None)


class Hearing:
    """Hears what people do to the containers of one engine, in threads of its own once it has
    begun, and does at once what cannot wait. `has_any`: whether it was told of a container."""

    def __init__(self, engine: Engine, rotation: Rotation, own: OwnSettings) -> None:
        self.has_any = False
        self._engine = engine
        self._rotation = rotation
        self._own = own
        self._since = time.time()
        self._feed: EventFeed | None = None
        self._freezes: FreezeWatch | None = None

    def begin(self, wake: Callable[[], None]) -> None:
        """Hear what has been done since this was made, if the engine tells it. `wake` is called, in
        another thread, when there is something to take."""
        if self._feed is None and self._engine.tells_hands:
            self._feed = EventFeed(self._engine, self._since, partial(self._hear, wake))
            self._freezes = FreezeWatch(partial(self._hear_freeze, self._feed))
            for located in self._own.seen():
                self._freezes.add(located.container.id, located.controller("freezer"))

    def add(self, located: LocatedContainer) -> None:
        """Look after a container whose settings plans change."""
        self.has_any = True
        self._own.see(located)
        if self._freezes is not None:
            self._freezes.add(located.container.id, located.controller("freezer"))

    def take(self) -> list[Event]:
        """Return the events that have come since the last call."""
        return self._feed.take() if self._feed else []

    def close(self) -> None:
        """Hear no more of the engine."""
        for follower in (self._feed, self._freezes):
            if follower is not None:
                follower.close()

    def _hear_freeze(self, feed: EventFeed, container_id: str) -> None:
        """Hear that somebody pauses a container. Those that take turns are paused by this run."""
        if self._rotation.turn_of(container_id) is None:
            feed.tell(Event(container_id, "", "", datetime.now(UTC), hand="freeze"))

    def _hear(self, wake: Callable[[], None], event: Event) -> None:
        """Do what cannot wait until somebody takes the event, then wake them."""
        if event.hand in LASTS_S or event.action == "update":
            self._rotation.touched.add(event.container_id)
        try:
            if event.hand in LASTS_S:
                self._own.raise_weight(event.container_id)
        finally:
            wake()
