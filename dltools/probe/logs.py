"""Progress from container logs, each point with the engine's time stamp of its line."""

from __future__ import annotations

import threading
from collections import deque
from datetime import UTC, datetime

from dltools.errors import DltoolsError
from dltools.probe.engine import Container, Engine, GoneError, RefusedError
from dltools.probe.progress import Extractor, Log, Point
from dltools.streams import Row

_WAITING = 100_000
"""Log entries held for the next sample; a reader that fills this waits, and the engine holds."""

_PARTING_S = 1.0


class LogSource:
    """The progress that one container's log shows.

    `read` gives what has been logged so far. `follow` then keeps a connection open in a thread, so
    that only new lines are read, and `drain` gives what has come since. A container that restarts
    keeps its log: call `follow` again.
    """

    def __init__(self, engine: Engine, container: Container, extractor: Extractor) -> None:
        """Nothing is read yet."""
        self._engine = engine
        self._container = container
        self._log = Log(extractor)
        self._since = 0.0
        self._last: tuple[str, int] = ("", 0)  # newest stamp, and how many entries bore it
        self._waiting: deque[bytes] = deque()
        self._room = threading.Semaphore(_WAITING)
        self._thread: threading.Thread | None = None
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
        """Read on in a thread from the last entry read, unless one is still reading."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=self._pump, args=(self._last,), daemon=True)
        self._thread.start()

    def drain(self, *, ended: bool = False) -> list[Row]:
        """Return the points that have come since the last call.

        With `ended`, for a container that has stopped, wait a moment for the rest of its log.
        """
        if ended and self._thread is not None:
            self._thread.join(_PARTING_S)
        entries = []
        while self._waiting:
            entries.append(self._waiting.popleft())
            self._room.release()
        return self._rows(entries)

    def _pump(self, last: tuple[str, int]) -> None:
        newest, skip = last
        # A little earlier, since the engine's clock has more digits than a float.
        since = _moment(newest).timestamp() - 0.001 if newest else self._since
        try:
            for entry in self._engine.follow(self._container, since):
                stamp = entry.partition(b" ")[0].decode(errors="replace")
                if stamp < newest:
                    continue
                if stamp == newest and skip > 0:
                    skip -= 1
                    continue
                self._room.acquire()
                self._waiting.append(entry)
        except GoneError:
            return
        except DltoolsError as error:
            self.gap = f"logs: {error}"[:120]
        except Exception:  # the connection broke: the engine stopped
            self.gap = "logs: connection lost"

    def _rows(self, entries: list[bytes]) -> list[Row]:
        rows: list[Row] = []
        for entry in entries:
            stamp_bytes, _, text = entry.partition(b" ")
            stamp = stamp_bytes.decode(errors="replace")
            try:
                time = _moment(stamp)
            except ValueError:
                continue
            self._last = (stamp, self._last[1] + 1 if stamp == self._last[0] else 1)
            rows += [self._row(time, point) for point in self._log.feed(text)]
        return rows

    def _row(self, time: datetime, point: Point) -> Row:
        return {
            "time": time,
            "host": self._engine.host,
            "kind": "progress",
            "container_id": self._container.id,
            "container_name": self._container.name,
            "metric": point.metric,
            "metric_original": point.original,
            "value": point.value,
            "step": point.step,
            "epoch": point.epoch,
            "source": point.source,
        }


def _moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp).astimezone(UTC)
