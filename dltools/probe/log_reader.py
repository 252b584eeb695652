"""The entries of one container's log, each once: first all, then as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dltools.engine.interface import Container, Engine, LogFlow
from dltools.notation.times import parse_time

_OVERLAP_S = 0.001
"""A stamp has more digits than a float: ask for a little more, and skip what was read."""


MOST_BYTES = 256 << 20
"""Bytes of a log that are read at once."""


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
        """Yield what was logged since a time in seconds since the epoch; of a log that is longer
        than `MOST_BYTES` the first part."""
        self._since, self.is_cut = since, False
        came = 0
        for entries in self._engine.logs(self.container, since):
            yield self._note(entries)
            came += sum(map(len, entries))
            if came > MOST_BYTES:
                self.is_cut = True
                break

    def read_new(self) -> list[bytes]:
        """Return what has come since the last reading."""
        if self._flow is None:
            return []
        entries = self._flow.take()
        self.is_behind = self._flow.is_behind
        return self._note(self._not_repeated(entries))

    def wait(self, seconds: float) -> None:
        """Wait until the log has ended, but no longer than this."""
        if self._flow is not None:
            self._flow.wait(seconds)

    def connect(self) -> None:
        """Go on from the last entry read, unless a connection is still open."""
        if self._flow is not None and not self._flow.ended:
            return
        stamp = self._last.stamp
        since = moment(stamp).timestamp() - _OVERLAP_S if stamp else self._since
        self._repeated = self._last
        self._flow = self._engine.follow(self.container, since)

    def skip(self) -> None:
        """Go on with what is logged from now on."""
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
