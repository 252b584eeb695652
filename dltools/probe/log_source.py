"""Reads progress from container logs; each point has the engine's time stamp of its line.

`inventory` asks for the source of each container. `LogReader` returns each entry of the log once:
first all entries so far, then new ones as they come.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from dltools.engine.interface import (
    LARGEST_BACKLOG,
    Container,
    Engine,
    GoneError,
    LogFlow,
    RefusedError,
)
from dltools.errors import ConfigError, DltoolsError
from dltools.labels import PATTERN
from dltools.notation.resources import format_bytes
from dltools.notation.times import parse_time
from dltools.probe.progress import Automatic, Extractor, Pattern, Point, PointReader
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint

_PATIENCE_S, _PATIENCE_S_PER_BYTE = 1.0, 1e-6
"""CPU seconds that reading one log may take in a sample, about five times what a usual log
takes."""

_LONGEST_GAP = 120

_OVERLAP_S = 0.001
"""A stamp has more digits than a float, so a little more is asked for, and known entries
skipped."""

MOST_BYTES = 256 << 20
"""Most bytes of a log that are read at once."""


def log_source(target: Target) -> ProgressSource:
    """Return the source that reads a container's log."""
    pattern, gap = target.container.labels.get(PATTERN), None
    extractor = target.pattern
    if pattern:
        try:
            extractor = Pattern(pattern)
        except ConfigError as error:
            gap = f"label {PATTERN}: {error}"
    return LogSource(
        target.engine,
        target.container,
        extractor or Automatic(),
        is_followed=target.is_followed,
        extractor_gap=gap,
    )


_LAST_LINES_S = 1.0
"""How long to wait (s) for the rest of the log of a container that has stopped."""


class LogSource(ProgressSource):
    """The progress that one container's log shows.

    The first reading returns the points of the log so far. If the source `is_followed`, a
    connection stays open, and the next readings return those of new lines. A container that
    restarts keeps its log.
    """

    def __init__(
        self,
        engine: Engine,
        container: Container,
        extractor: Extractor,
        *,
        is_followed: bool = False,
        extractor_gap: str | None = None,
    ) -> None:
        self._extractor_gap = self.gap = extractor_gap
        self._is_local = engine.is_local
        self._reader = LogReader(engine, container)
        self._stamp = b""  # of the present entry
        self._points_of = PointReader(extractor, lambda _line, _points: self._stamp)
        self._is_followed = is_followed
        self._is_read = False
        self._has_restarted = False

    @property
    def may_wait(self) -> bool:
        """Whether the next reading asks an engine on another machine."""
        return not self._is_local and not self._reader.is_connected

    def read(self, now: float, since: float) -> list[TimedPoint]:
        """Return the points of the log, or of its new lines."""
        del now
        if not (self._is_read and self._is_followed):
            found = self._read_all(since)
        elif self._has_restarted:
            found = self.stop()
        else:
            return self._read_new()
        self._is_read, self._has_restarted = True, False
        self.reconnect()
        return found

    def stop(self) -> list[TimedPoint]:
        """Wait a moment for the rest of the log, and return its points."""
        self._reader.wait(_LAST_LINES_S)
        return self._points([self._reader.read_new()])

    def restart(self, target: Target) -> None:
        """Continue with the container's log."""
        self._reader.container = target.container
        self._has_restarted = True

    def reconnect(self) -> None:
        """Continue after the last line read."""
        if not (self._is_read and self._is_followed):
            return
        try:
            self._reader.connect()
        except GoneError:
            return
        except DltoolsError as error:
            self._complain(str(error))

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _read_new(self) -> list[TimedPoint]:
        found = self._points([self._reader.read_new()])
        if self._reader.is_behind:
            most = format_bytes(LARGEST_BACKLOG)
            self._complain(f"more than {most} between two samples: lines skipped")
            self._points_of.tagged(b"\n")
            with suppress(GoneError):
                self._reader.skip()
        return found

    def _read_all(self, since: float) -> list[TimedPoint]:
        try:
            found = self._points(self._reader.read_all(since))
            if not self._is_followed:
                if self._reader.is_cut:
                    self._complain(f"more than {format_bytes(MOST_BYTES)}: see --since")
                for stamp, point in self._points_of.likely():
                    found += _timed(stamp, point)
            return found
        except GoneError:
            return []
        except RefusedError as error:
            self._complain(str(error))
            return []

    def _points(self, pieces: Iterable[list[bytes]]) -> list[TimedPoint]:
        found: list[TimedPoint] = []
        read = skipped = 0
        until = time.thread_time() + _PATIENCE_S
        for entries in pieces:
            until += _PATIENCE_S_PER_BYTE * sum(map(len, entries))
            for entry in entries:
                if skipped or time.thread_time() > until:
                    skipped += 1
                    continue
                read += 1
                self._stamp, _, text = entry.partition(b" ")
                for stamp, point in self._points_of.tagged(text):
                    found += _timed(stamp, point)
        if skipped:
            lines = f"{skipped} of {read + skipped} lines skipped"
            self._complain(f"{lines}: reading them takes too long")
        return found

    def _complain(self, message: str) -> None:
        gap = f"logs: {message}"[:_LONGEST_GAP]
        self.gap = "; ".join(filter(None, (self._extractor_gap, gap)))


def _timed(stamp: bytes, point: Point) -> list[TimedPoint]:
    try:
        return [TimedPoint(moment(stamp), point)]
    except ValueError:
        return []


def stamp_of(entry: bytes) -> bytes:
    """Return the engine's time stamp of an entry."""
    return entry.partition(b" ")[0]


def moment(stamp: bytes) -> datetime:
    """Return the time of a stamp. Raises ValueError."""
    return parse_time(stamp.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class _Mark:
    """The newest stamp that was read, and how many entries had it."""

    stamp: bytes = b""
    count: int = 0

    def after(self, entries: list[bytes]) -> _Mark:
        """Return the mark after more entries."""
        stamp = stamp_of(entries[-1])
        count = next(
            (number for number, entry in enumerate(reversed(entries)) if stamp_of(entry) != stamp),
            len(entries) + (self.count if stamp == self.stamp else 0),
        )
        return _Mark(stamp, count)


class LogReader:
    """Reads one log. Methods raise the errors of `Engine`."""

    def __init__(self, engine: Engine, container: Container) -> None:
        self._engine = engine
        self.container = container
        self._since = 0.0
        self._last = _Mark()
        self._flow: LogFlow | None = None
        self._repeated = _Mark()  # what a connection repeats of what was read
        self.is_cut = False
        """Whether `read_all` has left a part of the log."""
        self.is_behind = False
        """Whether more came since the last reading than is kept in memory."""

    @property
    def is_connected(self) -> bool:
        """Whether a connection has been made; it may have ended."""
        return self._flow is not None

    def read_all(self, since: float) -> Iterator[list[bytes]]:
        """Yield the entries since a time (seconds since the epoch), at most `MOST_BYTES` of
        them."""
        self._since, self.is_cut = since, False
        came = 0
        for entries in self._engine.logs(self.container, since):
            yield self._note(entries)
            came += sum(map(len, entries))
            if came > MOST_BYTES:
                self.is_cut = True
                break

    def read_new(self) -> list[bytes]:
        """Return the entries since the last reading."""
        if self._flow is None:
            return []
        entries = self._flow.take()
        self.is_behind = self._flow.is_behind
        return self._note(self._not_repeated(entries))

    def wait(self, seconds: float) -> None:
        """Wait until the log has ended, at most `seconds`."""
        if self._flow is not None:
            self._flow.wait(seconds)

    def connect(self) -> None:
        """Continue after the last entry read, unless a connection is still open."""
        if self._flow is not None and not self._flow.ended:
            return
        stamp = self._last.stamp
        since = moment(stamp).timestamp() - _OVERLAP_S if stamp else self._since
        self._repeated = self._last
        self._flow = self._engine.follow(self.container, since)

    def skip(self) -> None:
        """Continue with the entries from now on."""
        self.close()
        self._repeated = _Mark()
        self._flow = self._engine.follow(self.container, self._since, is_new_only=True)

    def close(self) -> None:
        """Close the connection."""
        if self._flow is not None:
            self._flow.close()

    def _note(self, entries: list[bytes]) -> list[bytes]:
        if entries:
            self._last = self._last.after(entries)
        return entries

    def _not_repeated(self, entries: list[bytes]) -> list[bytes]:
        """Return the entries without those that were read before the connection was made."""
        stamp, count = self._repeated.stamp, self._repeated.count
        if not stamp:
            return entries
        for number, entry in enumerate(entries):
            found = stamp_of(entry)
            if found == stamp and count > 0:
                count -= 1
            elif found >= stamp:
                self._repeated = _Mark()
                return entries[number:]
        self._repeated = _Mark(stamp, count)
        return []
