"""Progress from container logs, each point with the engine's time stamp of its line."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from dltools.engine.containers import Container, Engine, Entries, Flow, GoneError, RefusedError
from dltools.errors import DltoolsError
from dltools.observations.table import Row
from dltools.probe.progress import Extractor, Log
from dltools.probe.rows import progress_row

_PARTING_S = 1.0

_PATIENCE_S, _PATIENCE_S_PER_BYTE = 1.0, 1e-6
"""CPU seconds that reading one log may take in a sample: five times what a usual one does."""


class LogSource:
    """The progress that one container's log shows.

    `read` gives what has been logged so far. `follow` then keeps a connection open, so that only
    new lines are read, and `drain` gives what has come since. A container that restarts keeps its
    log: call `follow` again.
    """

    def __init__(self, engine: Engine, container: Container, extractor: Extractor) -> None:
        """Nothing is read yet."""
        self._engine = engine
        self._container = container
        self._log = Log(extractor)
        self._since = 0.0
        self._last: tuple[bytes, int] = (b"", 0)  # newest stamp, and how many entries bore it
        self._flow: Flow | None = None
        self._entries = Entries(container.tty)
        self._skip: tuple[bytes, int] = (b"", 0)  # what a connection repeats of what was read
        self.gap: str | None = None

    def read(self, since: float) -> list[Row]:
        """Return the points logged since a time in seconds since the epoch."""
        self._since = since
        try:
            data = self._engine.logs(self._container, since)
        except GoneError:
            return []
        except RefusedError as error:
            self.gap = f"logs: {error}"[:120]
            return []
        return self._rows(data)

    def follow(self) -> None:
        """Go on from the last entry read, unless a connection is still open."""
        if self._flow is not None and not self._flow.ended:
            return
        stamp = self._last[0]
        # A little earlier, since the engine's clock has more digits than a float.
        since = _moment(stamp).timestamp() - 0.001 if stamp else self._since
        self._skip, self._entries = self._last, Entries(self._container.tty)
        try:
            self._flow = self._engine.follow(self._container, since)
        except GoneError:
            return
        except DltoolsError as error:
            self.gap = f"logs: {error}"[:120]

    def drain(self, *, ended: bool = False) -> list[Row]:
        """Return the points that have come since the last call.

        With `ended`, for a container that has stopped, wait a moment for the rest of its log.
        """
        if self._flow is None:
            return []
        if ended:
            self._flow.wait(_PARTING_S)
        over = self._flow.ended
        entries = self._entries.feed(self._flow.take())
        if over:
            entries += self._entries.end()
        return self._rows(self._fresh(entries)) if entries else []

    def close(self) -> None:
        """Read no more."""
        if self._flow is not None:
            self._flow.close()

    def _fresh(self, entries: list[bytes]) -> list[bytes]:
        """Return the entries less those that were read before the connection was made."""
        stamp, count = self._skip
        if not stamp:
            return entries
        for number, entry in enumerate(entries):
            found = entry.partition(b" ")[0]
            if found == stamp and count > 0:
                count -= 1
            elif found >= stamp:
                self._skip = (b"", 0)
                return entries[number:]
        self._skip = (stamp, count)
        return []

    def _rows(self, entries: list[bytes]) -> list[Row]:
        rows: list[Row] = []
        stamp, count = self._last
        patience = _PATIENCE_S + _PATIENCE_S_PER_BYTE * sum(map(len, entries))
        until = time.thread_time() + patience
        for number, entry in enumerate(entries):
            if time.thread_time() > until:
                stamp, count = entries[-1].partition(b" ")[0], 1
                left = f"{len(entries) - number} of {len(entries)}"
                self.gap = f"logs: {left} lines passed over: reading them takes too long"
                break
            found, _, text = entry.partition(b" ")
            points = self._log.feed(text)
            count = count + 1 if found == stamp else 1
            stamp = found
            if not points:
                continue
            try:
                moment = _moment(found)
            except ValueError:
                continue
            rows += [
                progress_row(moment, self._engine.host, self._container.id, self._container.name, p)
                for p in points
            ]
        self._last = (stamp, count)
        return rows


def _moment(stamp: bytes) -> datetime:
    return datetime.fromisoformat(stamp.decode(errors="replace")).astimezone(UTC)
