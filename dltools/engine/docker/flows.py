"""Answers of a Docker engine that go on for long: drained by one thread, taken piece by piece."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable

from dltools.engine.interface import LARGEST_BACKLOG

LARGEST = LARGEST_BACKLOG
"""The most bytes of a stream that wait in memory."""

_NOTHING_YET = (errno.EAGAIN, 2)
"""What a connection says that has nothing to read; 2 is SSL_ERROR_WANT_READ, where it is of TLS."""

_DRAIN_S = 0.4
_CATCH_UP_S = 0.002
_LONGEST_TAKE_S = 0.2
_MUCH = 1 << 13
"""Bytes: a local socket holds some 280 writes, and the engine writes line by line (measured)."""


class Streams:
    """Drains all streams from one thread a few times a second: to wake up for each line of each
    container would cost more than the rest of a sample (measured: 20 us a line)."""

    def __init__(self) -> None:
        self._watched: set[Flow] = set()
        self._thread: threading.Thread | None = None

    def watch(self, connection: socket.socket, body: bytes) -> Flow:
        """Return an answer that goes on, of which `body` has already come."""
        connection.setblocking(False)
        made = Flow(connection, body, self._watched.discard)
        self._watched.add(made)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return made

    def _run(self) -> None:
        busy = False
        while True:
            time.sleep(_CATCH_UP_S if busy else _DRAIN_S)
            busy = max((one.drain() for one in tuple(self._watched)), default=False)


class Flow:
    """An answer that goes on for long; `ended`: nothing more will come."""

    def __init__(
        self, connection: socket.socket, body: bytes, forget: Callable[[Flow], None]
    ) -> None:
        """Begin with the `body` that has come; `forget` is called at the end."""
        self._connection = connection
        self._received = bytearray(body)
        self._forget = forget
        self._lock = threading.Lock()
        self.ended = False

    def drain(self) -> bool:
        """Take what has come into the socket; beyond `LARGEST` it stays there: the engine waits.

        Return whether it was so much that there may be more at once.
        """
        with self._lock:
            before = len(self._received)
            while not self.ended and before < LARGEST and len(self._received) < LARGEST:
                try:
                    data = self._connection.recv(1 << 18)
                except OSError as error:
                    if error.errno in _NOTHING_YET:
                        break
                    data = b""
                self._received += data
                if not data:
                    self._end()
            return len(self._received) - before >= _MUCH

    def take(self) -> bytes:
        """Return what has come since the last call, without waiting for more than a burst."""
        until = time.monotonic() + _LONGEST_TAKE_S
        while self.drain() and time.monotonic() < until:
            time.sleep(0.001)  # a burst: the engine has more than the socket holds
        with self._lock:
            came = bytes(self._received)
            self._received.clear()
        return came

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        until = time.monotonic() + seconds
        while not self.ended and time.monotonic() < until:
            self.drain()
            if not self.ended:
                time.sleep(0.01)

    def close(self) -> None:
        """Take no more."""
        with self._lock:
            self._received.clear()
            self._end()

    def _end(self) -> None:
        self.ended = True
        self._connection.close()
        self._forget(self)
