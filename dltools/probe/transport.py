"""Requests to a Docker engine: straight to a local socket, through docker-py to anything else.

The engine is found as the docker command finds it: DOCKER_HOST (with DOCKER_TLS_VERIFY and
DOCKER_CERT_PATH), else the context of DOCKER_CONTEXT or of the docker configuration. docker-py
serves TCP, TLS and SSH; on a local socket it would cost more than all else that a sample takes
(measured on 100 containers: 0.08 s to import, 4 ms a request against 0.3 ms).
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from dltools.errors import AccessError, DltoolsError, UnavailableError

TIMEOUT_S = 30
_SOCKET = "/var/run/docker.sock"
_DRAIN_S = 0.4
_CATCH_UP_S = 0.002
_LONGEST_TAKE_S = 0.2
_MUCH = 1 << 13
"""Bytes: a local socket holds some 280 writes, and the engine writes line by line (measured)."""
_LARGEST_HEAD = 1 << 16
_LARGEST = 8 << 20
"""Bytes of a stream that wait in memory at most."""

_VERSION = (1, 44)
"""The API version that is asked for where the engine has it: the oldest that Docker 29 serves."""

Params = Mapping[str, str | int]
NONE: Params = {}


class GoneError(DltoolsError):
    """The container is no longer there."""


class RefusedError(DltoolsError):
    """The engine refused a request; the message is the engine's."""


class Transport(Protocol):
    """Methods raise `GoneError`, `RefusedError`, `UnavailableError` or `AccessError`."""

    is_local: bool
    """Whether the engine is at the other end of a local socket."""

    def json(self, method: str, path: str, params: Params = NONE, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; `endless` waits for ever."""

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long, to be looked at now and then."""


class Flow(Protocol):
    """An answer that goes on."""

    def take(self) -> bytes:
        """Return what has come since the last call, without waiting."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, so long at most."""

    def close(self) -> None:
        """Take no more."""


def connect() -> Transport:
    """Return the way to the engine. Raises `UnavailableError` or `AccessError`."""
    where = os.environ.get("DOCKER_HOST") or ""
    settings: dict[str, Any] = {}
    if not where and (name := _context_name()):
        settings = _context(name)
        where = settings.get("base_url") or ""
    if not where or where.startswith("unix://"):
        return _Local(where.removeprefix("unix://") or _SOCKET)
    return _Remote(where, settings)


class _Local:
    """Requests over a local socket, HTTP/1.0, a connection each: over HTTP/1.1 each log line would
    be a chunk of its own and three times as slow, and http.client takes as long to import as a
    hundred requests (measured)."""

    is_local = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._streams = _Streams()
        self._prefix = ""
        version = self.json("GET", "/version")
        self._prefix = f"/v{_agreed(version.get('ApiVersion'), version.get('MinAPIVersion'))}"

    def json(self, method: str, path: str, params: Params = NONE, body: Any = None) -> Any:
        with _unreachable():
            answer = self._ask(method, path, params, body)
            return _decoded(b"".join(answer.rest()), answer.content_type)

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        with _unreachable():
            answer = self._ask("GET", path, params)
            if endless:
                answer.way.settimeout(None)  # the engine keeps quiet while nothing happens
        return answer.rest()

    def follow(self, path: str, params: Params) -> Flow:
        with _unreachable():
            answer = self._ask("GET", path, params)
        return self._streams.watch(answer.way, answer.begun)

    def _ask(self, method: str, path: str, params: Params, body: Any = None) -> _Answer:
        """Make a request and return its answer once that has begun, unless it is a refusal."""
        query = f"?{urlencode(params)}" if params else ""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {self._prefix}{path}{query} HTTP/1.0\r\nHost: docker\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        way = socket.socket(socket.AF_UNIX)
        try:
            way.settimeout(TIMEOUT_S)
            way.connect(self._path)
            way.sendall(head.encode() + b"\r\n" + data)
            answer = _Answer(way)
            if answer.status >= 400:
                _raise_for(answer.status, b"".join(answer.rest()))
        except BaseException:
            way.close()
            raise
        return answer


class _Answer:
    """The answer to a request: its status, and its body, of which `begun` came with the head."""

    def __init__(self, way: socket.socket) -> None:
        self.way = way
        data = b""
        while b"\r\n\r\n" not in data and len(data) < _LARGEST_HEAD:
            more = way.recv(1 << 16)
            if not more:
                break
            data += more
        head, end, self.begun = data.partition(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        words = first.split(None, 2)
        if not end or len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
            raise ConnectionError("no answer, or not one of HTTP")
        self.status = int(words[1])
        headers = {
            name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)
        }
        self.content_type = headers.get("content-type", "")
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
                data = self.way.recv(1 << 16)
                if not data:
                    break
            if self._left is not None:
                raise ConnectionError("the answer was cut off")
        finally:
            self.way.close()


class _Streams:
    """Drains all streams from one thread a few times a second: waking up for each line of each
    container would cost more than all else (measured: 20 us a line)."""

    def __init__(self) -> None:
        self._watched: set[_LocalFlow] = set()
        self._thread: threading.Thread | None = None

    def watch(self, connection: socket.socket, body: bytes) -> Flow:
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
        self._came = bytearray(body)
        self._forget = forget
        self._lock = threading.Lock()
        self.ended = False

    def drain(self) -> bool:
        """Take what stands in the socket; beyond `_LARGEST` it stays there: the engine waits.

        Return whether it was much, so that there may be more at once.
        """
        with self._lock:
            before = len(self._came)
            while not self.ended and before < _LARGEST and len(self._came) < _LARGEST:
                try:
                    data = self._connection.recv(1 << 18)
                except BlockingIOError:
                    break
                except OSError:
                    data = b""
                self._came += data
                if not data:
                    self._end()
            return len(self._came) - before >= _MUCH

    def take(self) -> bytes:
        until = time.monotonic() + _LONGEST_TAKE_S
        while self.drain() and time.monotonic() < until:
            time.sleep(0.001)  # a burst: the engine has more than the socket holds
        with self._lock:
            came = bytes(self._came)
            self._came.clear()
        return came

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.ended and time.monotonic() < until:
            self.drain()
            if not self.ended:
                time.sleep(0.01)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        self.ended = True
        self._connection.close()
        self._forget(self)


class _Remote:
    """Requests through docker-py."""

    is_local = False

    def __init__(self, where: str, settings: Mapping[str, Any]) -> None:
        from docker.api.client import APIClient
        from docker.utils import kwargs_from_env

        with _unreachable(Exception):
            found = dict(settings) or kwargs_from_env() or {"base_url": where}
            self._api = APIClient(version="auto", timeout=TIMEOUT_S, **found)

    def json(self, method: str, path: str, params: Params = NONE, body: Any = None) -> Any:
        with _unreachable(Exception):
            url = self._api._url(path)
            if method == "GET":
                response = self._api._get(url, params=dict(params))
            else:
                response = self._api._post_json(url, data=body, params=dict(params))
            text = response.content
        _raise_for(response.status_code, text)
        return _decoded(text, response.headers.get("Content-Type"))

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        with _unreachable(Exception):
            url = self._api._url(path)
            response = self._api._get(url, params=dict(params), stream=True)
            if response.status_code >= 400:
                _raise_for(response.status_code, response.content)
            if endless:
                self._api._disable_socket_timeout(self._api._get_raw_response_socket(response))
        found: Iterator[bytes] = response.iter_content(chunk_size=None)
        return found

    def follow(self, path: str, params: Params) -> Flow:
        return _RemoteFlow(self.chunks(path, params, endless=True))


class _RemoteFlow:
    """A stream that a thread of its own reads; it pauses while much is waiting to be taken."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._came = bytearray()
        self._room = threading.Condition()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def take(self) -> bytes:
        with self._room:
            came = bytes(self._came)
            self._came.clear()
            self._room.notify()
        return came

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def close(self) -> None:
        self._chunks = iter(())

    def _pump(self) -> None:
        with suppress(Exception):  # the connection broke: it has ended
            for data in self._chunks:
                with self._room:
                    self._room.wait_for(lambda: len(self._came) < _LARGEST)
                    self._came += data


@contextmanager
def _unreachable(
    *kinds: type[Exception],
) -> Iterator[None]:
    """Turn whatever goes wrong on the way into one of our errors."""
    wanted = kinds or (OSError, ValueError)
    try:
        yield
    except DltoolsError:
        raise
    except wanted as error:
        where = os.environ.get("DOCKER_HOST") or "the default socket"
        if "Permission denied" in f"{error} {error.__cause__} {error.__context__}":
            raise AccessError(
                f"no permission to use the Docker engine at {where}; "
                "run as root or join the group docker"
            ) from error
        raise UnavailableError(
            f"no Docker engine answers at {where}; is dockerd running?"
        ) from error


def _decoded(text: bytes, type_: str | None) -> Any:
    """Return a JSON answer; None for none, and for the output of a command."""
    return None if not text.strip() or "stream" in (type_ or "") else json.loads(text)


def _raise_for(status: int, text: bytes) -> None:
    if status < 400:
        return
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        message = text.decode(errors="replace")
    message = " ".join(message.split()) or f"status {status}"
    raise (GoneError if status == 404 else RefusedError)(message)


def _agreed(newest: str | None, oldest: str | None) -> str:
    """Return the API version to use with an engine that serves `oldest` to `newest`."""

    def parts(text: str | None) -> tuple[int, ...]:
        return tuple(int(part) for part in (text or "1.24").split("."))

    agreed = max(min(_VERSION, parts(newest)), parts(oldest))
    return ".".join(map(str, agreed))


def _context_name() -> str:
    """Return the docker command's current context, "" for the default one."""
    name = os.environ.get("DOCKER_CONTEXT") or ""
    if not name:
        folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
        try:
            name = str(json.loads(Path(folder, "config.json").read_text())["currentContext"])
        except (OSError, ValueError, KeyError, TypeError):
            name = ""
    return "" if name == "default" else name


def _context(name: str) -> dict[str, Any]:
    """Return the connection of a context of the docker command."""
    from docker.context import ContextAPI

    try:
        context = ContextAPI.get_context(name)
    except Exception as error:
        raise UnavailableError(f"docker context {name!r} cannot be read: {error}") from error
    if context is None:
        raise UnavailableError(f"docker context {name!r} does not exist; see docker context ls")
    tls = context.TLSConfig
    return {"base_url": context.Host, **({"tls": tls} if tls else {})}
