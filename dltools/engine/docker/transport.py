"""Requests to a Docker engine: HTTP/1.0, a connection for each.

`ways` make the connections: to a socket here, over TCP, TLS or ssh. Over HTTP/1.1 the engine sends
each log line as a chunk, which takes three times as long; http.client takes as long to import as a
hundred requests (measured).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from dltools.engine.docker.faults import CUT_OFF, NO_HTTP, connection_errors, raise_refusal
from dltools.engine.docker.flows import Flow, Streams
from dltools.engine.patience import Patience

TIMEOUT_S = 30

LOG_TIMEOUT_S = 10.0
"""How long a part of a log may take to come, and all of it."""

Params = Mapping[str, str | int]
NO_PARAMS: Params = {}

_VERSION = (1, 44)
"""The API version to use if the engine has it: the oldest that Docker 29 serves."""

_LARGEST_HEAD = 1 << 16
_NO_JSON = ("stream", "text/plain")
"""Types of answers that only say that all went well: to a command, and Podman's to an update."""


class Way(NamedTuple):
    """How an engine is reached: `dial` connects within a time (s), which also bounds each wait for
    an answer. `where` is its address, `is_local` whether it is behind a socket of this machine,
    `headers` are lines for each request, and its API begins at the path `base`."""

    where: str
    dial: Callable[[float], socket.socket]
    is_local: bool = False
    headers: str = "Host: docker\r\n"
    base: str = ""


class Transport:
    """Requests on one way. Methods raise `GoneError`, `RefusedError`, `UnavailableError` or
    `AccessError`. `server` is what the engine calls itself, such as Docker/20.10.24 (linux)."""

    def __init__(self, way: Way, patience: Patience | None = None) -> None:
        """Ask the engine for its versions. Later requests wait for it with patience."""
        self.is_local = way.is_local
        self.server = ""
        self._way = way
        self._patience = patience or Patience(0.0)
        self._streams = Streams()
        self._prefix = way.base
        version = self._json("GET", "/version")
        agreed = _agreed_version(version.get("ApiVersion"), version.get("MinAPIVersion"))
        self._prefix = f"{way.base}/v{agreed}"

    @property
    def repeats(self) -> int:
        """How many requests have been made again, as no answer had come."""
        return self._patience.repeats

    def json(self, method: str, path: str, params: Params = NO_PARAMS, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""
        return self._patience.repeat(lambda: self._json(method, path, params, body))

    def _json(self, method: str, path: str, params: Params = NO_PARAMS, body: Any = None) -> Any:
        with connection_errors(self._way.where):
            answer = self._ask(method, path, params, body)
            return _parsed(b"".join(answer.rest()), answer.content_type)

    def chunks(self, path: str, params: Params, quiet_s: float | None = 0.0) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes. `quiet_s`: how long nothing may come
        (s), 0 for as long as any answer may take, None for ever."""
        with connection_errors(self._way.where):
            answer = self._ask("GET", path, params, quiet_s=quiet_s or TIMEOUT_S)
            if quiet_s is None:  # the engine keeps quiet while nothing happens
                answer.connection.settimeout(None)
        return self._pieces(answer)

    def _pieces(self, answer: _Answer) -> Iterator[bytes]:
        with connection_errors(self._way.where):
            yield from answer.rest()

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long, to be taken piece by piece."""
        with connection_errors(self._way.where):
            answer = self._ask("GET", path, params, quiet_s=LOG_TIMEOUT_S)
        return self._streams.watch(answer.connection, answer.begun)

    def _ask(
        self, method: str, path: str, params: Params, body: Any = None, quiet_s: float = 0.0
    ) -> _Answer:
        """Make a request and return its answer, of which the head has come."""
        query = f"?{urlencode(params)}" if params else ""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {self._prefix}{path}{query} HTTP/1.0\r\n{self._way.headers}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        connection = self._way.dial(quiet_s or TIMEOUT_S)
        try:
            connection.sendall(head.encode() + b"\r\n" + data)
            answer = _Answer(connection)
            self.server = answer.server
            if answer.status >= 400:
                raise_refusal(answer.status, b"".join(answer.rest()))
        except BaseException:
            connection.close()
            raise
        return answer


class _Answer:
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


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="", errors="replace")


def _parsed(text: bytes, type_: str) -> Any:
    """Return a JSON answer; None for an empty answer, plain text, and the output of a command."""
    no_json = any(kind in type_ for kind in _NO_JSON)
    return None if no_json or not text.strip() else json.loads(text)
