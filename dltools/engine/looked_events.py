"""What happens to containers whose engine does not tell, found by looking again and again.

It is told by comparing what there is with what there was a second before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from dltools.engine.interface import Container, Engine, Event, GoneError

LOOKS_EVERY_S = 1.0
"""How often to look (ours): a list takes a millisecond."""

_LIVE, _ENDED = ("running", "paused"), ("exited", "dead")
_OUT_OF_MEMORY = "OOMKilled"

Look = Mapping[str, Container]
"""All containers of an engine by id, those that have ended too."""


def look(engine: Engine, earlier: Look) -> Look:
    """Return all containers. One that is as it was `earlier` is not asked for again."""
    states = {container.id: container.state for container in engine.containers()}
    containers = {}
    for id_ in engine.ids() | states.keys():
        before, state = earlier.get(id_), states.get(id_)
        has_ended = state is None and before is not None and before.state in _ENDED
        with suppress(GoneError):
            is_as_before = before is not None and (has_ended or before.state == state)
            containers[id_] = before if before and is_as_before else engine.inspect(id_)
    return containers


def changes(before: Look, now: Look) -> list[Event]:
    """Return what has happened between two looks, in order of time."""
    events = [event for id_, seen in now.items() for event in _events(seen, before.get(id_))]
    gone = [event for id_, seen in before.items() if id_ not in now for event in _removal(seen)]
    return sorted(events, key=lambda event: event.time) + gone


def _events(now: Container, before: Container | None) -> Iterator[Event]:
    """Yield what has happened to a container, None before it was there."""
    was_live = before is not None and before.state in _LIVE
    has_started = now.started and not (was_live or (before and before.started == now.started))
    if has_started:
        yield _event(now, "start", now.started)
    if now.state in _ENDED and (was_live or has_started):
        finished = now.ended.time or datetime.now(UTC)
        if now.ended.error == _OUT_OF_MEMORY:
            yield _event(now, "oom", finished)
        yield _event(now, "exit", finished)
    if before and was_live and now.state in _LIVE and now.state != before.state:
        yield _event(now, "pause" if now.state == "paused" else "unpause")


def _removal(before: Container) -> Iterator[Event]:
    """Yield what has happened to a container that is gone."""
    if before.state in _LIVE:
        yield _event(before, "exit")
    yield _event(before, "remove")


def _event(container: Container, action: str, at: datetime | None = None) -> Event:
    """Return an event, whose time is known or is now."""
    nanos = round(at.timestamp() * 1e9) if at else None
    code = container.ended.exit_code if action == "exit" else None
    return Event(
        container.id, container.name, action, at or datetime.now(UTC), nanos, code, container.labels
    )


def past(engine: Engine, since: float, until: float = float("inf")) -> list[Event]:
    """Return the events between two times (seconds since 1970) that the containers tell which are
    still there."""
    return _between(look(engine, {}), since, until)


def _between(now: Look, since: float, until: float = float("inf")) -> list[Event]:
    return [change for change in changes({}, now) if since <= change.time.timestamp() <= until]


def watch(engine: Engine, since: float) -> Iterator[Event]:
    """Yield events from a time on (seconds since 1970), for ever. Raises as the engine does."""
    before = look(engine, {})
    yield from _between(before, since)
    while True:
        time.sleep(LOOKS_EVERY_S)
        now = look(engine, before)
        yield from changes(before, now)
        before = now
