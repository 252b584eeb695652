"""Progress from container logs, each point with the engine's time stamp of its line."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

from dltools.engine.interface import LARGEST_BACKLOG, Container, Engine, GoneError, RefusedError
from dltools.errors import ConfigError, DltoolsError
from dltools.labels import PATTERN
from dltools.notation.byte_sizes import format_bytes
from dltools.probe.log_reader import MOST_BYTES, LogReader, moment
from dltools.probe.progress import Automatic, Extractor, Pattern, Point, PointReader
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint

_LAST_LINES_S = 1.0
"""How long to wait for the rest of the log of a container that has stopped."""

_PATIENCE_S, _PATIENCE_S_PER_BYTE = 1.0, 1e-6
"""CPU seconds that reading one log may take in a sample: five times what a usual one does."""

_LONGEST_GAP = 120


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


class LogSource(ProgressSource):
    """The progress that one container's log shows.

    A reading gives what has been logged so far. If the source `is_followed`, a connection stays
    open after the first reading, and the next ones give only new lines. A container that restarts
    keeps its log.
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
        """Go on with the container's log."""
        self._reader.container = target.container
        self._has_restarted = True

    def reconnect(self) -> None:
        """Go on from the last line read."""
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
            self._points_of.marked(b"\n")
            with suppress(GoneError):
                self._reader.skip()
        return found

    def _read_all(self, since: float) -> list[TimedPoint]:
        try:
            found = self._points(self._reader.read_all(since))
            if not self._is_followed:
                if self._reader.is_cut:
                    self._complain(f"more than {format_bytes(MOST_BYTES)}: see --since")
                for mark, point in self._points_of.settled():
                    found += _timed(mark, point)
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
                for mark, point in self._points_of.marked(text):
                    found += _timed(mark, point)
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
