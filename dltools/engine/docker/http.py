"""Requests to a Docker engine in HTTP/1.0, a connection for each, and its errors in plain words.

The engine is behind a socket of this machine, TCP, TLS, or a tunnel: only how a connection is made
differs. Over HTTP/1.1 the engine sends each log line as a chunk, which takes three times as long;
http.client takes as long to import as a hundred requests (measured).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from dltools.engine.interface import LARGEST_BACKLOG, GoneError, RefusedError
from dltools.engine.patience import LOG_TIMEOUT_S, TIMEOUT_S, Patience
from dltools.errors import AccessError, DltoolsError, UnavailableError

LARGEST = LARGEST_BACKLOG
"""The most bytes of a stream that wait in memory."""

NO_HTTP = "no answer, or not one of HTTP"
CUT_OFF = "the answer was cut off"

Params = Mapping[str, str | int]
NO_PARAMS: Params = {}

Dial = Callable[[float], socket.socket]
"""Connects to an engine; neither that nor a later wait for data may take longer (s). Raises
OSError."""

_VERSION = (1, 44)
"""The API version to use if the engine has it: the oldest that Docker 29 serves."""

_LARGEST_HEAD = 1 << 16


def dial_socket(path: str) -> Dial:
    """Return how to connect to a socket of this machine."""

    def dial(timeout_s: float) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(timeout_s)
            made.connect(path)
        except BaseException:
            made.close()
            raise
        return made

    return dial


class Transport:
    """Requests to one engine. Methods raise `GoneError`, `RefusedError`, `UnavailableError` or
    `AccessError`."""

    server: str = ""
    """What the engine calls itself, such as Docker/20.10.24 (linux)."""

    def __init__(self, where: str, dial: Dial, *, is_local: bool = False) -> None:
        """Ask the engine for its versions. `where` is its address, for messages; `is_local`:
        whether it is behind a socket of this machine."""
        self.is_local = is_local
        self.patience = Patience(0.0)
        """How long to wait for an engine that restarts: at first not at all."""
        self._where = where
        self._dial = dial
        self._host = urlsplit(where).netloc or "docker"
        self._prefix = ""
        version = self.json("GET", "/version")
        agreed = agreed_version(version.get("ApiVersion"), version.get("MinAPIVersion"))
        self._prefix = f"/v{agreed}"

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
            answer = self._ask("GET", path, params, timeout_s=quiet_s or TIMEOUT_S)
            if quiet_s is None:  # the engine keeps quiet while nothing happens
                answer.connection.settimeout(None)
        return self._pieces(answer)

    def _pieces(self, answer: Answer) -> Iterator[bytes]:
        with connection_errors(self._where):
            yield from answer.rest()

    def begin(self, path: str, params: Params) -> Answer:
        """Make a GET request whose answer goes on for long."""
        with connection_errors(self._where):
            return self._ask("GET", path, params, timeout_s=LOG_TIMEOUT_S)

    def _ask(
        self, method: str, path: str, params: Params, body: Any = None, timeout_s: float = 0.0
    ) -> Answer:
        """Make a request and return its answer, of which the head has come."""
        query = f"?{urlencode(params)}" if params else ""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {self._prefix}{path}{query} HTTP/1.0\r\nHost: {self._host}\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        connection = self._dial(timeout_s or TIMEOUT_S)
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


def agreed_version(newest: str | None, oldest: str | None) -> str:
    """Return the API version to use with an engine that serves `oldest` to `newest`."""

    def parts(text: str | None) -> tuple[int, ...]:
        return tuple(int(part) for part in (text or "1.24").split("."))

    agreed = max(min(_VERSION, parts(newest)), parts(oldest))
    return ".".join(map(str, agreed))


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="", errors="replace")


@contextmanager
def connection_errors(where: str) -> Iterator[None]:
    """Turn errors in a connection to the engine at an address into one of ours."""
    try:
        yield
    except DltoolsError:
        raise
    except (OSError, ValueError) as error:
        said = f"{type(error).__name__} {error}"
        if "Permission denied" in said:
            raise AccessError(
                f"no permission to use the Docker engine at {where}; {_who_may(where)}"
            ) from error
        why = next((why for sign, why in _WHY.items() if sign in said), _SILENT)
        if "podman" in where:
            why = why.replace("is dockerd running?", "does podman.socket run?")
            raise UnavailableError(f"no Podman answers at {where}: {why}") from error
        if "No such file" in said and PODMAN_SOCKET.exists():
            why = f"{why} Podman is here: --host unix://{PODMAN_SOCKET}"
        raise UnavailableError(f"no Docker engine answers at {where}: {why}") from error


@contextmanager
def understood() -> Iterator[None]:
    """Turn errors in reading the fields of an answer into `UnavailableError`: JSON of another form
    than an engine's is no answer."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = f"{type(error).__name__}: {error}"[:_LONGEST_WHY]
        raise UnavailableError(f"the Docker engine's answer makes no sense: {why}") from error


_LONGEST_WHY = 80


def _who_may(where: str) -> str:
    """Return who may use an engine: the group of its socket, or root alone."""
    socket = Path(where.removeprefix("unix://"))
    with suppress(OSError):
        if socket.stat().st_gid == 0:
            return "run as root: only root may use its socket, as with Snap's Docker"
    return "run as root or join the group docker"


PODMAN_SOCKET = Path("/run/podman/podman.sock")

_SILENT = "is dockerd running?"
_WHY = {
    "gaierror": "no such host",
    "SSL": "TLS failed; see DOCKER_TLS_VERIFY and DOCKER_CERT_PATH",
    "No such file": "no such socket; is dockerd running?",
    "Connection refused": "nothing listens there; is dockerd running?",
    "No route to host": "no route to this host",
    "Network is unreachable": "no route to this host",
    "timed out": "no answer in time; is it the right host and port?",
    NO_HTTP: "what answers there is not a Docker engine",
    "DecodeError": "its answer is not JSON",
    CUT_OFF: "its answer was cut off",
    "reset": "it closed the connection",
    "Broken pipe": "it closed the connection",
}
"""What the kind and the words of an error mean; the first that fits counts."""


def parse_answer(text: bytes, type_: str | None) -> Any:
    """Return a JSON answer; None for an empty answer, plain text, and the output of a command."""
    no_json = any(kind in (type_ or "") for kind in _NO_JSON)
    return None if no_json or not text.strip() else json.loads(text)


_NO_JSON = ("stream", "text/plain")
"""Types of answers that only say that all went well: to a command, and Podman's to an update."""


_STOPPING = ("transport is closing", "containerd.sock")
"""What an engine says that has lost its containerd, as it does when it stops (measured: Docker
20.10 refused 23 requests so in six restarts)."""


def raise_refusal(status: int, text: bytes) -> None:
    """Raise `GoneError` or `RefusedError` with the engine's message about a request that it has
    refused, and `UnavailableError` if it is about to stop."""
    is_told = True
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        message, is_told = text.decode(errors="replace"), False
    message = " ".join(message.split()) or f"status {status}"
    if status == 404 and not is_told:  # Podman says so of a request, not of a container
        raise RefusedError(f"the engine does not know this request: {message}")
    if status >= 500 and any(sign in message for sign in _STOPPING):
        raise UnavailableError(f"the Docker engine is stopping: {message}")
    raise (GoneError if status == 404 else RefusedError)(message)
