"""Requests to a Docker engine behind a local socket, and its answers that go on for long.

`connect` takes this way for a socket here, `Tunnelled` for one that ssh forwards. The package
docker would cost more than the rest of a sample (measured on 100 containers: 0.08 s to import, and
4 ms a request instead of 0.3 ms).
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

from dltools.engine.docker import transport
from dltools.engine.docker.transport import (
    Flow,
    Params,
    Transport,
    connection_errors,
    parse_answer,
    pieces,
    raise_refusal,
)

_VERSION = (1, 44)
"""The API version to use if the engine has it: the oldest that Docker 29 serves."""

_LARGEST_HEAD = 1 << 16


class Local(Transport):
    """Requests over a local socket in HTTP/1.0, a connection for each.

    Over HTTP/1.1 the engine sends each log line as a chunk, which takes three times as long;
    http.client takes as long to import as a hundred requests (measured).
    """

    def __init__(self, path: str, forwarded_to: str = "") -> None:
        """Ask the engine for its versions. The socket may be forwarded to an engine elsewhere.

        Raises the errors of the methods.
        """
        super().__init__()
        self.is_local = not forwarded_to
        self._path = path
        self._where = forwarded_to or f"unix://{path}"
        self._streams = Streams()
        self._prefix = ""
        version = self.json("GET", "/version")
        self._prefix = (
            f"/v{_agreed_version(version.get('ApiVersion'), version.get('MinAPIVersion'))}"
        )

    def _answer(self, method: str, path: str, params: Params, body: Any) -> Any:
        with connection_errors(self._where):
            answer = self._ask(method, path, params, body)
            return parse_answer(b"".join(answer.rest()), answer.content_type)

    def chunks(self, path: str, params: Params, quiet_s: float | None = 0.0) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; see `Transport`."""
        with connection_errors(self._where):
            answer = self._ask("GET", path, params, quiet_s=quiet_s or transport.TIMEOUT_S)
            if quiet_s is None:  # the engine keeps quiet while nothing happens
                answer.connection.settimeout(None)
        return pieces(self._where, answer.rest())

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long."""
        with connection_errors(self._where):
            answer = self._ask("GET", path, params, quiet_s=transport.LOG_TIMEOUT_S)
        return self._streams.watch(answer.connection, answer.begun)

    def _ask(
        self, method: str, path: str, params: Params, body: Any = None, quiet_s: float = 0.0
    ) -> Answer:
        """Make a request and return its answer, of which the head has come."""
        query = f"?{urlencode(params)}" if params else ""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {self._prefix}{path}{query} HTTP/1.0\r\nHost: docker\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(quiet_s or transport.TIMEOUT_S)
            connection.connect(self._path)
            connection.sendall(head.encode() + b"\r\n" + data)
            answer = Answer(connection)
            self.server = answer.server
            if answer.status >= 400:
                raise_refusal(answer.status, b"".join(answer.rest()))
        except BaseException:
            connection.close()
            raise
        return answer


class Answer:
    """The answer to a request: its status, and the part of its body that came with the head."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        data = b""
        while b"\r\n\r\n" not in data and len(data) < _LARGEST_HEAD:
            more = connection.recv(1 << 16)
            if not more:
                break
            data += more
        head, end, self.begun = data.partition(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        words = first.split(None, 2)
        if not end or len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
            raise ConnectionError(transport.NO_HTTP)
        self.status = int(words[1])
        headers = {
            name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)
        }
        self.content_type = headers.get("content-type", "")
        self.server = headers.get("server", "")
        length = headers.get("content-length", "")
        self._left = int(length) if length.isdigit() else None

    def rest(self) -> Iterator[bytes]:
        """Yield the body to its end."""
        came = 0
        try:
            data = self.begun
            while True:
                came += len(data)
                if data:
                    yield data
                if self._left is not None and came >= self._left:
                    return
                data = self.connection.recv(1 << 16)
                if not data:
                    break
            if self._left is not None:
                raise ConnectionError(transport.CUT_OFF)
        finally:
            self.connection.close()


def _agreed_version(newest: str | None, oldest: str | None) -> str:
    """Return the API version to use with an engine that serves `oldest` to `newest`."""

    def parts(text: str | None) -> tuple[int, ...]:
        return tuple(int(part) for part in (text or "1.24").split("."))

    agreed = max(min(_VERSION, parts(newest)), parts(oldest))
    return ".".join(map(str, agreed))


_DRAIN_S = 0.4
_CATCH_UP_S = 0.002
_LONGEST_TAKE_S = 0.2
_MUCH = 1 << 13
"""Bytes: a local socket holds some 280 writes, and the engine writes line by line (measured)."""


class Streams:
    """Drains all streams from one thread a few times a second: to wake up for each line of each
    container would cost more than the rest of a sample (measured: 20 us a line)."""

    def __init__(self) -> None:
        self._watched: set[_LocalFlow] = set()
        self._thread: threading.Thread | None = None

    def watch(self, connection: socket.socket, body: bytes) -> Flow:
        """Return an answer that goes on, of which `body` has already come."""
        connection.setblocking(False)
        made = _LocalFlow(connection, body, self._watched.discard)
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


class _LocalFlow:
    def __init__(
        self, connection: socket.socket, body: bytes, forget: Callable[[_LocalFlow], None]
    ) -> None:
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
            while (
                not self.ended
                and before < transport.LARGEST
                and len(self._received) < transport.LARGEST
            ):
                try:
                    data = self._connection.recv(1 << 18)
                except BlockingIOError:
                    break
                except OSError:
                    data = b""
                self._received += data
                if not data:
                    self._end()
            return len(self._received) - before >= _MUCH

    def take(self) -> bytes:
        until = time.monotonic() + _LONGEST_TAKE_S
        while self.drain() and time.monotonic() < until:
            time.sleep(0.001)  # a burst: the engine has more than the socket holds
        with self._lock:
            came = bytes(self._received)
            self._received.clear()
        return came

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.ended and time.monotonic() < until:
            self.drain()
            if not self.ended:
                time.sleep(0.01)

    def close(self) -> None:
        with self._lock:
            self._received.clear()
            self._end()

    def _end(self) -> None:
        self.ended = True
        self._connection.close()
        self._forget(self)
