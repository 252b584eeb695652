"""How requests reach a Docker engine: what `Local`, `Remote` and `Tunnelled` offer.

`DockerEngine` makes its requests through one of them. The errors of all of them are told in the
same words.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from dltools.engine.interface import LARGEST_BACKLOG, GoneError, RefusedError
from dltools.engine.patience import Patience
from dltools.errors import AccessError, DltoolsError, UnavailableError

TIMEOUT_S = 30

LOG_TIMEOUT_S = 10.0
"""How long a part of a log may take to come, and all of it."""

LARGEST = LARGEST_BACKLOG
"""The most bytes of a stream that wait in memory."""

NO_HTTP = "no answer, or not one of HTTP"
CUT_OFF = "the answer was cut off"

Params = Mapping[str, str | int]
NO_PARAMS: Params = {}


class Transport(ABC):
    """Methods raise `GoneError`, `RefusedError`, `UnavailableError` or `AccessError`."""

    is_local: bool = False
    """Whether the engine is behind a local socket."""

    server: str = ""
    """What the engine calls itself, such as Docker/20.10.24 (linux)."""

    def __init__(self) -> None:
        self.patience = Patience(0.0)
        """How long to wait for an engine that restarts: at first not at all."""

    def json(self, method: str, path: str, params: Params = NO_PARAMS, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""
        return self.patience.repeat(lambda: self._answer(method, path, params, body))

    @abstractmethod
    def _answer(self, method: str, path: str, params: Params, body: Any) -> Any:
        """Make a request once, as `json` does."""

    @abstractmethod
    def chunks(self, path: str, params: Params, quiet_s: float | None = 0.0) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes. `quiet_s`: how long nothing may come
        (s), 0 for as long as any answer may take, None for ever."""

    @abstractmethod
    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long, to be taken piece by piece."""


class Flow(Protocol):
    """An answer that goes on for long."""

    def take(self) -> bytes:
        """Return what has come since the last call, without waiting."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""

    def close(self) -> None:
        """Take no more."""


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="", errors="replace")


@contextmanager
def connection_errors(where: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of some kinds (OSError and ValueError by default) in a connection to the engine
    at an address into one of ours."""
    wanted = kinds or (OSError, ValueError)
    try:
        yield
    except DltoolsError:
        raise
    except wanted as error:
        said = f"{error} {error.__cause__} {error.__context__}"
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


def pieces(where: str, body: Iterator[bytes], *kinds: type[Exception]) -> Iterator[bytes]:
    """Yield the body of an answer as it comes; turn errors on the way as `connection_errors`
    does."""
    with connection_errors(where, *kinds):
        yield from body


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
            return "run as root: its socket is root's alone, as that of Snap's Docker is"
    return "run as root or join the group docker"


PODMAN_SOCKET = Path("/run/podman/podman.sock")

_SILENT = "is dockerd running?"
_WHY = {
    "NameResolution": "no such host",
    "Name or service not known": "no such host",
    "SSL": "TLS failed; see DOCKER_TLS_VERIFY and DOCKER_CERT_PATH",
    "TLS": "TLS failed; see DOCKER_TLS_VERIFY and DOCKER_CERT_PATH",
    "No such file": "no such socket; is dockerd running?",
    "Connection refused": "nothing listens there; is dockerd running?",
    "No route to host": "no route to this host",
    "Network is unreachable": "no route to this host",
    "timed out": "no answer in time; is it the right host and port?",
    NO_HTTP: "what answers there is no Docker engine",
    "Expecting value": "its answer is not JSON",
    "column": "its answer is not JSON",
    "utf-8": "its answer is not JSON",
    CUT_OFF: "its answer was cut off",
    "IncompleteRead": "its answer was cut off",
    "reset": "it broke the connection off",
    "Broken pipe": "it broke the connection off",
}
"""What the words of an error mean; the first that fits counts."""


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
    """Raise `GoneError` or `RefusedError` with the engine's message, if it refused a request, and
    `UnavailableError` if it is about to stop."""
    if status < 400:
        return
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
