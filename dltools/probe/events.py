"""The engine's container events as rows: those of the past, or as they come."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dltools.engine.event_feed import SeenEvents
from dltools.engine.interface import Engine, Event
from dltools.errors import DltoolsError, UnavailableError
from dltools.labels import has_labels
from dltools.observations.table import Row
from dltools.threads import in_background

_ACTIONS = ("start", "exit", "oom", "pause", "unpause", "update", "unhealthy")
"""The events that become rows."""

_CHANGES = ("start", "exit")
"""The events that change which containers run."""

_ONE_MOMENT_S = 0.05
"""Time for a container's first process to run, and for events that come together."""

_LONGEST_REASON = 120

Listener = Callable[[str, str], None]
"""Called in a thread with the action of every event and the id of its container."""


def event_row(event: Event, host: str) -> Row | None:
    """Return the row of an event, None for one that becomes no row."""
    if event.action not in _ACTIONS or not event.container_id:
        return None
    return _row(event.time, host, event.container_id, event.name, event.action, event.exit_code)


def _exit_row(engine: Engine, run: Run) -> Row:
    """Return the row of an exit without an event, because the engine was away. If the engine does
    not know the time, it is now."""
    row = _row(datetime.now(UTC), engine.host, run.id, run.name, "exit", None)
    with suppress(DltoolsError):
        now = engine.inspect(run.id)
        row["time"] = now.ended.time or row["time"]
        row["exit_code"] = now.ended.exit_code if now.state == "exited" else None
    return row


def _row(time: datetime, host: str, id_: str, name: str, event: str, exit_code: int | None) -> Row:
    return {
        "time": time,
        "host": host,
        "kind": "event",
        "container_id": id_,
        "container_name": name or None,
        "event": event,
        "exit_code": exit_code,
    }


def is_selected(event: Event, labels: Sequence[str], names: Sequence[Any]) -> bool:
    """Tell whether an event's container has all the labels (KEY or KEY=VALUE), and a name that one
    of the compiled expressions matches (none: any name)."""
    if not has_labels(event.labels, labels):
        return False
    return not names or any(name.search(event.name) for name in names)


def await_change(changed: threading.Event, seconds: float) -> bool:
    """Wait until an event stream sets `changed`, at most `seconds`, and clear it; tell whether it
    was set. Events within 50 ms are one change."""
    if not changed.wait(seconds):
        return False
    time.sleep(_ONE_MOMENT_S)
    changed.clear()
    return True


class Run(NamedTuple):
    """A run of a container: its id, its name, and when it began."""

    id: str
    name: str
    started: datetime | None


class EventStream:
    """The events of the containers of one engine that the user selected."""

    def __init__(
        self,
        engine: Engine,
        labels: Sequence[str],
        names: Sequence[Any],
        listener: Listener,
        changed: threading.Event,
    ) -> None:
        """Watch nothing yet. After `follow`, the listener is called for each event, and `changed`
        is set when a container starts or exits."""
        self._engine = engine
        self._labels, self._names = labels, names
        self._listener = listener
        self._came: queue.SimpleQueue[Row | DltoolsError] = queue.SimpleQueue()
        self._kept: list[Row] = []
        self._seen = SeenEvents()
        self._told: set[str] = set()  # ids whose exit was told before its event came
        self._begun: dict[str, Run] = {}  # by events, and not yet ended
        self._is_watched = False
        self._changed = changed
        self._ended: DltoolsError | None = None  # why nothing more comes

    def past(self, since: float, until: float) -> list[Row]:
        """Return the events between two times (seconds since the epoch) that the engine still
        remembers."""
        rows = map(self._row, self._engine.past_events(since, until))
        return [row for row in rows if row is not None]

    def follow(self, since: float) -> None:
        """Watch events from a time on (seconds since the epoch), unless they are watched
        already."""
        if not self._is_watched:
            self._is_watched = True
            self._seen.known_until = max(self._seen.known_until, since)
            in_background(self._watch, since)

    def resume(self) -> None:
        """Watch events again after the engine was away, from the last known one on. Events that
        came before are kept."""
        while not self._came.empty():
            if not isinstance(item := self._came.get_nowait(), DltoolsError):
                self._kept.append(item)
        self._ended = None
        self.follow(self._seen.asked_since)

    def begun(self) -> list[Run]:
        """Return the runs whose start event has come, and whose exit event has not."""
        return list(self._begun.copy().values())

    def missed_exit(self, run: Run) -> Row | None:
        """Return the row of the exit of a run, None if its event has come."""
        begun = run.started.timestamp() * 1e9 if run.started else 0.0
        if any(nanos > begun for nanos in self._seen.times(run.id, "exit")):
            return None
        row = _exit_row(self._engine, run)
        self._begun.pop(run.id, None)
        self._told.add(run.id)
        return row

    def take(self) -> list[Row]:
        """Return the events that have come since the last call.

        Raises a `DltoolsError` if the stream has ended, until `resume`; events before its end come
        later.
        """
        while self._ended is None:
            try:
                item = self._came.get_nowait()
            except queue.Empty:
                rows, self._kept = self._kept, []
                return rows
            if isinstance(item, DltoolsError):
                self._ended = item
            else:
                self._kept.append(item)
        raise self._ended

    def _watch(self, since: float) -> None:
        try:
            for event in self._engine.events(since):
                self._note(event)
            ended: DltoolsError = UnavailableError("the Docker engine closed the event stream")
        except DltoolsError as error:
            ended = error
        except Exception as error:
            ended = UnavailableError(f"lost the Docker engine: {str(error)[:_LONGEST_REASON]}")
        self._is_watched = False  # before the end is known: whoever takes it may watch again
        self._came.put(ended)

    def _note(self, event: Event) -> None:
        id_ = event.container_id
        if not self._seen.is_new(event):
            return
        self._listener(event.action, id_)
        row = self._row(event)
        if row is not None and row["event"] == "start":
            self._begun[id_] = Run(id_, row["container_name"] or "", row["time"])
        elif row is not None and row["event"] == "exit":
            self._begun.pop(id_, None)
        if row is not None and row["event"] in _CHANGES and id_ in self._told:
            self._told.discard(id_)
            row = row if row["event"] == "start" else None
        if row is not None:
            self._came.put(row)
            if row["event"] in _CHANGES:
                self._changed.set()

    def _row(self, event: Event) -> Row | None:
        if not is_selected(event, self._labels, self._names):
            return None
        return event_row(event, self._engine.host)
