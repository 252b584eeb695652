"""Takes samples of one or several hosts at the same time; called by the tool dl-probe.

A sample of a host has its counters, and the progress and events of its containers. Each of several
hosts is read in a thread of its own. A host that has not answered by the deadline gets a row of
kind `node` with only a gap; what it answers later is in the next sample. A single host is read in
the caller's thread, without a deadline, because a sample without it would be empty.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from dltools.engine.interface import Engine, UnableError
from dltools.engine.kernel_reading import hold_files
from dltools.engine.links import DistinctEngines, Link
from dltools.errors import DltoolsError, UnavailableError
from dltools.observations.roles import NO_RULES, Rules
from dltools.observations.table import Row
from dltools.probe.counters import Counters
from dltools.probe.events import EventStream, Run, await_change
from dltools.probe.inventory import Inventory, Watched
from dltools.probe.progress import Pattern
from dltools.probe.progress.source import ProgressSource, TimedPoint
from dltools.probe.rows import progress_row
from dltools.threads import in_threads

_WATCH_AGAIN_S = 10.0
"""Least time between two attempts to watch events: after each all containers are inspected."""

_SLOW_S = 1.0
"""After how many seconds the sources that remain are read side by side."""

Connector = Callable[[], Engine]
"""Connects to an engine, and raises `DltoolsError` if that fails."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure."""

    filters: Mapping[str, list[str]]
    """Those of `docker ps`, by name."""

    since_s: float
    """Seconds of log history to read."""

    pattern: Pattern | None = None
    """What finds progress in logs, None for all that dltools knows."""

    names: Sequence[Any] = ()
    """Compiled expressions, one of which matches a container's name; () for any name."""

    state_directories: Sequence[Path] = ()
    """Where dl-apply notes turns."""

    roles: Rules = NO_RULES
    """The user's rules for roles."""

    user_from: str = ""
    """See `dltools.probe.rows.user_columns`."""


class Sampler:
    """Samples hosts. `faults`: by host, why it is not in the newest sample; `is_complete`: whether
    each host was in every sample so far.

    A single host has no faults: methods raise the errors of its `Engine`.
    """

    def __init__(
        self, connectors: Mapping[str, Connector], options: Options, deadline_s: float = math.inf
    ) -> None:
        """Connect to the engine if it is the only one, and raise its errors. Read nothing yet.

        A host has the name of its connector until its engine reports its own name. Each of several
        hosts has `deadline_s` for a sample.
        """
        self._deadline_s = deadline_s
        self._changed = threading.Event()
        names = DistinctEngines()
        self._hosts = [
            _Host(name, names, partial(_connected, connect, options, self._changed))
            for name, connect in connectors.items()
        ]
        self._only = self._hosts[0].connect() if len(self._hosts) == 1 else None
        self._has_answered = False
        self.faults: dict[str, str] = {}
        self.is_complete = True

    def follow(self) -> None:
        """From now on watch events and read only new log lines: for a stream of samples."""
        for host in self._hosts:
            host.is_followed = True
        if self._only is not None:
            self._only.follow()

    def resume(self) -> None:
        """Continue after the only engine was away, so that nothing is read twice or missed. Raises
        `UnavailableError` if it is still away. With several engines each sample asks each again."""
        if self._only is not None:
            self._only.resume()

    def wait_for_change(self, seconds: float) -> bool:
        """Wait until a container starts or exits, at most `seconds`; tell whether one has."""
        return await_change(self._changed, seconds)

    def counters(self) -> list[Row]:
        """Return only counters and limits. Response times in the next sample are of the time
        since. Raises as `sample` does."""
        return self._read(_HostSampler.counters)

    def sample(self) -> list[Row]:
        """Return a whole sample: new progress and events, then counters and limits.

        If it raises, the next sample has what was already read. With several hosts it raises
        `UnavailableError` only if none has ever answered.
        """
        return self._read(_HostSampler.sample)

    def left_paused(self) -> list[str]:
        """Return the names of containers that a dl-apply paused, and did not unpause before it
        ended, as of the last sample."""
        return [name for host in self._hosts for name in host.left_paused()]

    def _read(self, read: Callable[[_HostSampler], list[Row]]) -> list[Row]:
        return self._read_all(read) if self._only is None else read(self._only)

    def _read_all(self, read: Callable[[_HostSampler], list[Row]]) -> list[Row]:
        until = time.monotonic() + self._deadline_s
        for host in self._hosts:
            host.begin(partial(host.read, read))
        rows: list[Row] = []
        self.faults = {}
        for host in self._hosts:
            host.wait(until - time.monotonic())
            late = f"no answer within {self._deadline_s:g} s" if host.is_busy else ""
            fault = late or host.fault
            rows += host.take()
            if fault:
                self.faults[host.name] = fault
                rows.append(_gap(host.name, fault))
        self._has_answered |= len(self.faults) < len(self._hosts)
        self.is_complete &= not self.faults
        if not self._has_answered:
            raise UnavailableError("; ".join(dict.fromkeys(self.faults.values())))
        return rows


def _connected(connect: Connector, options: Options, changed: threading.Event) -> _HostSampler:
    return _HostSampler(connect(), options, changed)


def _gap(host: str, fault: str) -> Row:
    """Return the row of a host that was not reached, with the reason."""
    return {"time": datetime.now(UTC), "host": host, "kind": "node", "gap": f"no sample: {fault}"}


class _Host(Link):
    """One host: its sampler, once its engine has answered, and the rows read so far."""

    def __init__(
        self, address: str, names: DistinctEngines, make: Callable[[], _HostSampler]
    ) -> None:
        super().__init__(address)
        self.name = address
        self.is_followed = False
        self._names = names
        self._make = make
        self._sampler: _HostSampler | None = None
        self._rows: list[Row] = []
        self._rows_lock = threading.Lock()  # a late reading adds to them while they are taken

    def connect(self) -> _HostSampler:
        """Connect to the engine. Raises `DltoolsError`, also if another host has its name."""
        made = self._make()
        self._names.claim("host name", made.host, self.address)
        self.name, self._sampler = made.host, made
        return made

    def take(self) -> list[Row]:
        """Return the rows read since the last call."""
        with self._rows_lock:
            rows, self._rows = self._rows, []
        return rows

    def left_paused(self) -> list[str]:
        return [] if self.is_busy or self._sampler is None else self._sampler.left_paused()

    def read(self, read: Callable[[_HostSampler], list[Row]]) -> None:
        """Read it, and connect to it first if need be. Raises as the engine does."""
        made = self._sampler
        if made is None:
            made = self.connect()
            if self.is_followed:
                made.follow()
        elif self.error is not None and self.is_followed:
            made.resume()
        rows = read(made)
        with self._rows_lock:
            self._rows += rows


class _HostSampler:
    """Samples one engine's host. Methods raise the errors of `Engine`. A container that vanishes
    during a sample is not in it."""

    def __init__(self, engine: Engine, options: Options, changed: threading.Event) -> None:
        """Read nothing yet. `changed` is set when a container starts or exits."""
        self._engine = engine
        self.host = engine.host
        self._begun = time.time()
        self._since = self._begun - options.since_s  # progress and events from before are left out
        self._has_window = False
        self._pending: list[Row] = []  # read, and not yet in a sample
        self._lapse: str | None = None  # what is missing of this sample's events
        self._watches_again = 0.0  # when they may be watched again
        self._missed = _MissedExits()
        self._inventory = Inventory(engine, options.filters, options.pattern)
        self._counters = Counters(
            engine, options.state_directories, options.roles, options.user_from
        )
        self._events = EventStream(
            engine,
            options.filters.get("label", ()),
            options.names,
            self._inventory.note_event,
            changed,
        )

    def follow(self) -> None:
        """From now on watch events and read only new log lines: for a stream of samples."""
        self._inventory.is_followed = True
        hold_files()
        self._events.follow(self._begun)

    def resume(self) -> None:
        """Continue after the engine was away, so that nothing is read twice or missed.

        Raises `UnavailableError` if it is still away.
        """
        self._engine.containers()
        running = [watched.container for watched in self._inventory.running.values()]
        runs = [Run(container.id, container.name, container.started) for container in running]
        self._missed.note((*runs, *self._events.begun()))
        self._inventory.distrust()
        for watched in self._inventory.all:
            for source in watched.sources.all:
                source.reconnect()
        self._events.resume()

    def counters(self) -> list[Row]:
        """Return only counters and limits. Response times in the next sample are of the time
        since."""
        self._has_window = True
        self._inventory.refresh()
        self._read_progress(only_windows=True)
        return self._counters.read(self._inventory)

    def sample(self) -> list[Row]:
        """Return a whole sample: new progress and events, then counters and limits.

        If it raises, the next sample has what was already read.
        """
        begun = time.perf_counter()
        self._inventory.refresh()
        self._read_last_points()
        self._pending += self._new_events()
        self._pending += self._missed.rows(self._inventory, self._events)
        self._read_progress()
        counters = self._counters.read(self._inventory)
        counters[0]["probe_cpu_seconds"] = time.process_time()
        counters[0]["probe_sample_seconds"] = time.perf_counter() - begun
        if self._lapse is not None:
            counters[0]["gap"] = "; ".join(filter(None, (counters[0].get("gap"), self._lapse)))
        rows, self._pending = self._pending, []
        return rows + counters

    def left_paused(self) -> list[str]:
        """Return the names of containers that a dl-apply paused, and did not unpause before it
        ended, as of the last sample."""
        return self._counters.left_paused(self._inventory.running)

    def _new_events(self) -> list[Row]:
        """Return the new events. A stream that has ended is gone on with, if the engine still
        answers; until it can be, the engine is asked which containers run. Raises
        `UnavailableError` if it does not answer, `UnableError` if it tells no events."""
        self._lapse = None
        try:
            if self._inventory.is_followed:
                return self._events.take()
            return self._events.past(self._since, time.time())
        except UnableError:
            raise
        except DltoolsError as error:
            self._lapse = f"events: {error}"
        now = time.monotonic()
        if self._inventory.is_followed and now >= self._watches_again:
            self._watches_again = now + _WATCH_AGAIN_S
            self.resume()
        else:
            self._inventory.expire()
        return []

    def _read_last_points(self) -> None:
        for watched in self._inventory.take_stopped():
            for source in watched.sources.all:
                self._read(_Due(watched, source), source.stop)

    def _read_progress(self, *, only_windows: bool = False) -> None:
        """Read the sources, in parallel if they may wait, or if one was slow. With `only_windows`
        read only those whose points are about the time between two readings."""
        now = time.monotonic()

        def read(due: _Due) -> None:
            self._read(due, lambda: due.source.read(now, self._since))

        waiting = []
        for due in self._due(only_windows):
            if due.source.may_wait or time.monotonic() - now > _SLOW_S:
                waiting.append(due)
            else:
                read(due)
        in_threads(read, waiting)

    def _read(self, due: _Due, read: Callable[[], list[TimedPoint]]) -> None:
        """Keep what a source reads; tell as a gap why it cannot be read, whatever the reason:
        others are sampled all the same."""
        try:
            self._keep(due.watched, read())
        except DltoolsError as error:
            due.source.gap = str(error)
        except Exception as error:
            due.source.gap = f"not read, which is a bug in dltools: {type(error).__name__}: {error}"

    def _due(self, only_windows: bool) -> list[_Due]:
        """Return the sources to read now."""
        has_window = self._inventory.is_followed or self._has_window
        return [
            _Due(watched, source)
            for watched in self._inventory.all
            for source in watched.sources.all
            if (has_window if source.needs_two_readings else not only_windows)
        ]

    def _keep(self, watched: Watched, points: Iterable[TimedPoint]) -> None:
        """Keep points for the sample."""
        container = watched.container
        timed_points = list(points)
        watched.role.note([point.point for point in timed_points], container.labels)
        self._pending += [
            progress_row(point.time, self.host, container.id, container.name, point.point)
            for point in timed_points
        ]


class _MissedExits:
    """Exits, without events, of containers that ran before their engine was away."""

    def __init__(self) -> None:
        self._ran: dict[str, Run] = {}
        self._is_back = False  # the engine, and its events have had time to come

    def note(self, runs: Iterable[Run]) -> None:
        """Take note of what ran when the engine went away."""
        for run in runs:
            self._ran.setdefault(run.id, run)
        self._is_back = False

    def rows(self, inventory: Inventory, events: EventStream) -> Iterator[Row]:
        """Yield the rows of those that run no more, or anew, once events have had time to come."""
        if not self._is_back:
            self._is_back = True
            return
        while self._ran:
            id_, before = self._ran.popitem()
            watched = inventory.running.get(id_)
            began = watched.container.started if watched else None
            runs_anew = began and before.started and began > before.started
            if (watched is None or runs_anew) and (row := events.missed_exit(before)):
                yield row


@dataclass(frozen=True, slots=True)
class _Due:
    """A source to read now, and its container."""

    watched: Watched
    source: ProgressSource
