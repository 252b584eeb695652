"""Reads progress from container logs; each point has the engine's time stamp of its line.

`inventory` asks for the source of each container. `LogReader` returns each entry of the log once:
first all entries so far, then new ones as they come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from dltools.notation.times import time_or_none
from dltools.probe.progress import Automatic, Extractor, Pattern, Point, PointReader
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint
from dltools.probe.thinning import DUTY, Thinner

_PATIENCE_S, _PATIENCE_S_PER_BYTE = 0.25, 5e-7
"""CPU seconds that reading one log may take in a sample, several times what a usual log takes."""

_SILENT_S = 300.0
"""After how long a connection on which nothing comes is made again: a proxy may have cut it, and
some log drivers stand still."""

_SOONEST_S, _LATEST_S = 1.0, 60.0
"""How long to wait before a connection that has ended is made again: ever longer."""

_REST = 10
"""How many times as long as it took to fail to read a log it is left alone."""

_LONGEST_GAP = 120

_OVERLAP_S = 0.001
"""A stamp has more digits than a float, so a little more is asked for, and known entries
skipped."""

_AHEAD_S = 1.0
"""How far a stamp on this machine may be ahead of its clock."""

MOST_BYTES = LARGEST_BACKLOG
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
        self._reader = LogReader(engine, container)
        self._stamp = b""  # of the present entry
        self._points_of = PointReader(extractor, lambda _line, _points: self._stamp)
        self._is_followed = is_followed
        self._is_read = False
        self._has_restarted = False
        self._read_at = float("-inf")
        self._rests_until = float("-inf")
        self._again = _Again()
        self._cost_s = 0.0
        self._thinner = Thinner()

    @property
    def may_wait(self) -> bool:
        """Whether the next reading asks an engine on another machine."""
        return not self._reader.is_local and not self._reader.is_connected

    def read(self, now: float, since: float) -> list[TimedPoint]:
        """Return the points of the log, or of its new lines."""
        if now < self._rests_until:
            return []
        is_first = not (self._is_read and self._is_followed)
        if not (is_first or self._has_restarted or DUTY.may_read(now, self._cost_s)):
            return []
        begun = time.thread_time()
        if is_first or self._reader.is_connected:
            self.gap = self._extractor_gap
        if is_first:
            points = self._read_all(now, since)
        elif self._has_restarted:
            points = self.stop()
        else:
            points = self._read_new(now)
        self._read_at = now
        if is_first or self._has_restarted:
            self._has_restarted = False
            self.reconnect()
        else:
            self._cost_s = time.thread_time() - begun
            DUTY.note(self._cost_s)
        return points

    def stop(self) -> list[TimedPoint]:
        """Wait a moment for the rest of the log, and return its points."""
        entries = self._reader.read_new()
        if self._reader.has_ended:  # with the container, or before
            self.reconnect()
        self._reader.wait(_LAST_LINES_S)
        return self._points(entries + self._reader.read_new(), 0.0)

    def restart(self, target: Target) -> None:
        """Continue with the container's log."""
        self._reader.container = target.container
        self._has_restarted = True

    def reconnect(self) -> None:
        """Continue after the last line read."""
        if not (self._is_read and self._is_followed):
            return
        with self._faults_told():
            if self._reader.connect():
                self._complain("the clock was set back: lines skipped")

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _read_new(self, now: float) -> list[TimedPoint]:
        entries = self._reader.read_new()
        points = self._points(entries, now - self._read_at)
        if self._reader.fault:
            self._complain(self._reader.fault)
        if self._reader.is_behind:
            most = format_bytes(LARGEST_BACKLOG)
            self._complain(f"more than {most} between two samples: lines skipped")
            self._points_of.tagged(b"\n")
            with self._faults_told():
                self._reader.skip()
        elif self._again.is_due(now, has_come=bool(entries), has_ended=self._reader.has_ended):
            self._reader.close()
            self.reconnect()
        return points

    def _read_all(self, now: float, since: float) -> list[TimedPoint]:
        begun = time.monotonic()
        entries: list[bytes] = []
        with self._faults_told():
            for piece in self._reader.read_all(since):
                entries += piece
            self._is_read = True
        if not self._is_read:
            self._rests_until = now + _REST * (time.monotonic() - begun)
        if self._reader.is_cut:
            self._complain(f"more than {format_bytes(MOST_BYTES)}: see --since")
        points = self._points(entries, time.time() - since)
        if not self._is_followed:
            for stamp, point in self._points_of.likely():
                points += _timed(stamp, point, self._complain)
        return points

    def _points(self, entries: Sequence[bytes], seconds: float) -> list[TimedPoint]:
        points: list[TimedPoint] = []
        chosen = [
            (stamp if counts else b"", text)
            for entry, counts in self._thinner.chosen(entries, seconds)
            for stamp, _, text in (entry.partition(b" "),)
        ]
        texts = b"".join(text for _, text in chosen)
        self._points_of.expect(texts)
        until = time.thread_time() + _PATIENCE_S + _PATIENCE_S_PER_BYTE * len(texts)
        for read, (stamp, text) in enumerate(chosen):
            if time.thread_time() > until:
                lines = f"{len(chosen) - read} of {len(chosen)} lines skipped"
                self._complain(f"{lines}: reading them takes too long")
                break
            self._stamp = stamp
            for of, point in self._points_of.tagged(text):
                points += _timed(of, point, self._complain)
        return points

    @contextmanager
    def _faults_told(self) -> Iterator[None]:
        """Tell a fault of this log as a gap: other containers are sampled all the same."""
        try:
            yield
        except GoneError:
            pass
        except RefusedError as error:  # that is an answer: asking again gives no other
            self._is_read = True
            self._complain(str(error))
        except DltoolsError as error:
            self._complain(str(error))

    def _complain(self, message: str) -> None:
        gap = f"logs: {message}"[:_LONGEST_GAP]
        self.gap = "; ".join(filter(None, (self._extractor_gap, gap)))


def _timed(stamp: bytes, point: Point, complain: Callable[[str], None]) -> list[TimedPoint]:
    """Return a point with the time of its line, nothing for one that does not count."""
    at = moment(stamp)
    if stamp and at is None:
        complain("lines without a time stamp are left out")
    return [] if at is None else [TimedPoint(at, point)]


class _Again:
    """Decides when a connection to a log is made again."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._wait_s = _SOONEST_S

    def is_due(self, now: float, *, has_come: bool, has_ended: bool) -> bool:
        """Tell whether to connect again: soon after it has ended, or when it is silent for long.
        `has_come`: whether anything came since the last call."""
        if has_come or self._since > now or self._since == float("-inf"):
            self._since, self._wait_s = now, _SOONEST_S
        if now - self._since < (self._wait_s if has_ended else _SILENT_S):
            return False
        self._since, self._wait_s = now, min(_LATEST_S, 2 * self._wait_s)
        return True


def stamp_of(entry: bytes) -> bytes:
    """Return the engine's time stamp of an entry."""
    return entry.partition(b" ")[0]


def moment(stamp: bytes) -> datetime | None:
    """Return the time of a stamp, None for one that is no time."""
    return time_or_none(stamp.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class _Mark:
    """The newest stamp that was read, and how many entries had it. What is no time is passed
    over."""

    stamp: bytes = b""
    count: int = 0

    def after(self, entries: list[bytes]) -> _Mark:
        """Return the mark after more entries."""
        stamp = next(filter(moment, map(stamp_of, reversed(entries))), b"")
        if not stamp:
            return self
        count = [entry.startswith(stamp + b" ") for entry in entries].count(True)
        return _Mark(stamp, count + (self.count if stamp == self.stamp else 0))


class LogReader:
    """Reads one log. Methods raise the errors of `Engine`."""

    def __init__(self, engine: Engine, container: Container) -> None:
        self._engine = engine
        self.container = container
        self.is_local = engine.is_local
        """Whether the engine is on this machine."""
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
        """Whether there is a connection; it may have ended."""
        return self._flow is not None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come, because there is no connection, or it has ended."""
        return self._flow is None or self._flow.ended

    @property
    def fault(self) -> str:
        """What the engine said when it ended the connection, "" for nothing."""
        return self._flow.fault if self._flow is not None else ""

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

    def connect(self) -> bool:
        """Continue after the last entry read, unless a connection is still open. Where that entry
        is from the future, since the clock was set back, continue from now on, and return True."""
        if not self.has_ended:
            return False
        last = moment(self._last.stamp)
        at = last.timestamp() if last else self._since
        if self.is_local and at > time.time() + _AHEAD_S:
            self.skip()
            return True
        self.close()
        self._repeated = self._last
        self._flow = self._engine.follow(self.container, at - _OVERLAP_S if last else at)
        return False

    def skip(self) -> None:
        """Continue with the entries from now on."""
        self.close()
        self._repeated = _Mark()
        self._flow = self._engine.follow(self.container, self._since, is_new_only=True)

    def close(self) -> None:
        """Close the connection."""
        if self._flow is not None:
            self._flow.close()
        self._flow = None

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
            entry_stamp = stamp_of(entry)
            if entry_stamp == stamp and count > 0:
                count -= 1
            elif entry_stamp >= stamp:
                self._repeated = _Mark()
                return entries[number:]
        self._repeated = _Mark(stamp, count)
        return []
