"""Requests to a Docker engine, and its answers that go on for long.

The package docker would cost more than the rest of a sample (measured on 100 containers: 0.08 s to
import, and 4 ms a request instead of 0.3 ms).
"""

from __future__ import annotations

import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from dltools.engine.docker.faults import (
    CUT_OFF,
    NO_HTTP,
    connection_errors,
    parse_answer,
    raise_refusal,
)
from dltools.engine.interface import LARGEST_BACKLOG
from dltools.engine.patience import Patience

TIMEOUT_S = 30

LOG_TIMEOUT_S = 10.0
"""How long a part of a log may take to come, and all of it."""

LARGEST = LARGEST_BACKLOG
"""The most bytes of a stream that wait in memory."""

Params = Mapping[str, str | int]
NO_PARAMS: Params = {}

_VERSION = (1, 44)
"""The API version to use if the engine has it: the oldest that Docker 29 serves."""

_LARGEST_HEAD = 1 << 16
_HEADERS = {"Host": "docker"}


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="", errors="replace")


class Transport(ABC):
    """Requests in HTTP/1.0, a connection for each: `Local`, `Tunnelled` or `Remote`. Methods raise
    `GoneError`, `RefusedError`, `UnavailableError` or `AccessError`.

    Over HTTP/1.1 the engine sends each log line as a chunk, which takes three times as long;
    http.client takes as long to import as a hundred requests (measured).
    """

    is_local: bool = False
    """Whether the engine is behind a local socket."""

    server: str = ""
    """What the engine calls itself, such as Docker/20.10.24 (linux)."""

    def __init__(self, where: str, prefix: str = "", headers: Mapping[str, str] = _HEADERS) -> None:
        """Ask the engine at an address for its versions. `prefix` comes before each path."""
        self.patience = Patience(0.0)
        """How long to wait for an engine that restarts: at first not at all."""
        self._where = where
        self._streams = Streams()
        self._headers = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
        self._prefix = prefix
        version = self.json("GET", "/version")
        agreed = _agreed_version(version.get("ApiVersion"), version.get("MinAPIVersion"))
        self._prefix = f"{prefix}/v{agreed}"

    def json(self, method: str, path: str, params: Params = NO_PARAMS, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""
        return self.patience.repeat(lambda: self._answer(method, path, params, body))

    def _answer(self, method: str, path: str, params: Params, body: Any) -> Any:
        with connection_errors(self._where):
            answer = self._ask(method, path, params, body)
            return parse_answer(b"".join(answer.rest()), answer.content_type)

    def chunks(self, path: str, params: Params, quiet_s: float | None = 0.0) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes. `quiet_s`: how long nothing may come
        (s), 0 for as long as any answer may take, None for ever."""
        with connection_errors(self._where):
            answer = self._ask("GET", path, params, quiet_s=quiet_s or TIMEOUT_S)
            if quiet_s is None:  # the engine keeps quiet while nothing happens
                answer.connection.settimeout(None)
        return self._pieces(answer)

    def _pieces(self, answer: Answer) -> Iterator[bytes]:
        with connection_errors(self._where):
            yield from answer.rest()

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long, to be taken piece by piece."""
        with connection_errors(self._where):
            answer = self._ask("GET", path, params, quiet_s=LOG_TIMEOUT_S)
        return self._streams.watch(answer.connection, answer.begun)

    @abstractmethod
    def _connected(self, timeout_s: float) -> socket.socket:
        """Return a new connection, with a bound for each of its calls (s). Raises OSError."""

    def _ask(
        self, method: str, path: str, params: Params, body: Any = None, quiet_s: float = 0.0
    ) -> Answer:
        """Make a request and return its answer, of which the head has come."""
        query = f"?{urlencode(params)}" if params else ""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {self._prefix}{path}{query} HTTP/1.0\r\n{self._headers}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        connection = self._connected(quiet_s or TIMEOUT_S)
        try:
            connection.sendall(head.encode() + b"\r\n" + data)
            answer = Answer(connection)
            self.server = answer.server
            if answer.status >= 400:
                raise_refusal(answer.status, b"".join(answer.rest()))
        except BaseException:
            connection.close()
            raise
        return answer


class Local(Transport):
    """Requests over a local socket."""

    is_local = True

    def __init__(self, path: str, where: str = "") -> None:
        """The socket at a path; `where` says where the engine is that it is forwarded to."""
        self._path = path
        super().__init__(where or f"unix://{path}")

    def _connected(self, timeout_s: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(timeout_s)
            connection.connect(self._path)
        except BaseException:
            connection.close()
            raise
        return connection


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
            raise ConnectionError(NO_HTTP)
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
                raise ConnectionError(CUT_OFF)
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
    """An answer that goes on for long. `ended`: nothing more will come."""

    def __init__(
        self, connection: socket.socket, body: bytes, forget: Callable[[Flow], None]
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
            while not self.ended and len(self._received) < LARGEST:
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
        """Return what has come since the last call, without waiting."""
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
