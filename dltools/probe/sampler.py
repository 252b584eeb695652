"""One host's samples: its counters, its containers' progress and their events."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dltools.engine.interface import Container, Engine
from dltools.engine.kernel_files import hold_files
from dltools.observations.roles import NO_RULES, Rules
from dltools.observations.table import Row
from dltools.probe.counters import Counters
from dltools.probe.events import EventStream, Run
from dltools.probe.inventory import Inventory, Watched
from dltools.probe.progress import Pattern
from dltools.probe.progress.source import ProgressSource, TimedPoint
from dltools.probe.rows import progress_row
from dltools.probe.threads import side_by_side


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure.

    `filters` are those of `docker ps`, `names` the filter by name as compiled expressions.
    `since_s` are the seconds of log history to read, `pattern` finds progress in logs, and
    `metrics` are those to keep (none: all). dl-apply notes turns in the `state_directories`.
    `roles` is what the user says of the roles of containers.
    """

    filters: Mapping[str, list[str]]
    since_s: float
    pattern: Pattern | None = None
    metrics: frozenset[str] = frozenset()
    names: Sequence[Any] = ()
    state_directories: Sequence[Path] = ()
    roles: Rules = NO_RULES


@dataclass(frozen=True, slots=True)
class _Due:
    """A source to read now, and its container."""

    watched: Watched
    source: ProgressSource


class Sampler:
    """Samples one engine's host. Methods raise the errors of `Engine`. A container that vanishes
    during a sample is not in it."""

    def __init__(
        self, engine: Engine, options: Options, changed: threading.Event | None = None
    ) -> None:
        """Nothing is read yet. `changed` is set when a container starts or exits."""
        self._engine = engine
        self._options = options
        self._begun = time.time()
        self._is_followed = self._has_window = False
        self._pending: list[Row] = []  # read, and not yet in a sample
        self._ran: dict[str, Run] = {}  # before the engine was away
        self._is_back = False  # and its events have had time to come
        self._inventory = Inventory(engine, options.filters, options.pattern)
        self._counters = Counters(engine, options.state_directories, options.roles)
        self._events = EventStream(
            engine,
            options.filters.get("label", ()),
            options.names,
            self._inventory.note_event,
            changed,
        )

    is_complete = True
    """Whether the host was in every sample, as `Hosts` has several: one that is not is an error."""

    @property
    def faults(self) -> dict[str, str]:
        """Why hosts are not in the newest sample."""
        return {}

    @property
    def host(self) -> str:
        """The name of the host."""
        return self._engine.host

    def follow(self) -> None:
        """From now on watch events and read only new log lines: for a stream of samples."""
        self._is_followed = self._inventory.is_followed = True
        hold_files()
        self._events.follow(self._begun)

    def resume(self) -> None:
        """Go on following after the engine was away; nothing is read twice or missed.

        Raises `UnavailableError` if it is still away.
        """
        self._engine.containers()
        running = [watched.container for watched in self._inventory.running.values()]
        runs = [Run(one.id, one.name, one.started) for one in running]
        for run in (*runs, *self._events.begun()):
            self._ran.setdefault(run.id, run)
        self._is_back = False
        self._inventory.distrust()
        for watched in self._inventory.all:
            for source in watched.sources.all:
                source.reconnect()
        self._events.resume()

    def wait_for_change(self, seconds: float) -> bool:
        """Wait until a container starts or exits, but so long at most; tell whether one has."""
        return self._events.wait_for_change(seconds)

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
        self._add_missed_exits()
        self._read_progress()
        counters = self._counters.read(self._inventory)
        counters[0]["probe_cpu_seconds"] = time.process_time()
        counters[0]["probe_sample_seconds"] = time.perf_counter() - begun
        rows, self._pending = self._pending, []
        return rows + counters

    def left_paused(self) -> list[str]:
        """Return the names of containers that a dl-apply paused, and did not unpause before it
        ended, as of the last sample."""
        return self._counters.left_paused(self._inventory.running)

    def _new_events(self) -> list[Row]:
        if self._is_followed:
            return self._events.take()
        return self._events.past(self._since, time.time())

    def _add_missed_exits(self) -> None:
        """Add the exits of containers that ran before the engine was away, and that no event has
        told."""
        if not self._is_back:
            self._is_back = True
            return
        while self._ran:
            id_, before = self._ran.popitem()
            watched = self._inventory.running.get(id_)
            if (watched is None or _has_restarted(watched.container, before)) and (
                row := self._events.missed_exit(before)
            ):
                self._pending.append(row)

    @property
    def _since(self) -> float:
        """Progress and events from before this time are left out (seconds since the epoch)."""
        return self._begun - self._options.since_s

    def _read_last_points(self) -> None:
        for watched in self._inventory.take_stopped():
            for source in watched.sources.all:
                self._keep(watched, source.stop())

    def _read_progress(self, *, only_windows: bool = False) -> None:
        """Read the sources, side by side if they may wait; with `only_windows` only those that give
        points over the time between two readings."""
        now = time.monotonic()

        def read(due: _Due) -> None:
            self._keep(due.watched, due.source.read(now, self._since))

        waiting = []
        for due in self._due(only_windows):
            if due.source.may_wait:
                waiting.append(due)
            else:
                read(due)
        side_by_side(read, waiting)

    def _due(self, only_windows: bool) -> list[_Due]:
        """Return the sources to read now."""
        has_window = self._is_followed or self._has_window
        return [
            _Due(watched, source)
            for watched in self._inventory.all
            for source in watched.sources.all
            if (has_window if source.needs_two_readings else not only_windows)
        ]

    def _keep(self, watched: Watched, points: Iterable[TimedPoint]) -> None:
        """Keep the points of the metrics that the user wants for the sample."""
        wanted, container = self._options.metrics, watched.container
        found = list(points)
        watched.role.metrics.update(one.point.metric for one in found)
        self._pending += [
            progress_row(one.time, self._engine.host, container.id, container.name, one.point)
            for one in found
            if not wanted or one.point.metric in wanted
        ]


def _has_restarted(container: Container, before: Run) -> bool:
    """Tell whether a container runs that was started after a run of it."""
    if container.started is None or before.started is None:
        return False
    return container.started > before.started
