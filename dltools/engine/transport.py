"""What every transport to a Docker engine offers, and the errors that all of them raise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from dltools.errors import AccessError, DltoolsError, UnavailableError

TIMEOUT_S = 30

LARGEST = 8 << 20
"""The most bytes of a stream that wait in memory."""

NO_HTTP = "no answer, or not one of HTTP"

Params = Mapping[str, str | int]
NO_PARAMS: Params = {}


class GoneError(DltoolsError):
    """The container is no longer there."""


class RefusedError(DltoolsError):
    """The engine refused a request; the message is the engine's."""


class Transport(Protocol):
    """Methods raise `GoneError`, `RefusedError`, `UnavailableError` or `AccessError`."""

    is_local: bool
    """Whether the engine is behind a local socket."""

    def json(self, method: str, path: str, params: Params = NO_PARAMS, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; `endless` waits for ever."""

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
                f"no permission to use the Docker engine at {where}; "
                "run as root or join the group docker"
            ) from error
        why = next((why for sign, why in _WHY.items() if sign in said), _SILENT)
        raise UnavailableError(f"no Docker engine answers at {where}: {why}") from error


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
}
"""What the words of an error mean; the first that fits counts."""


def parse_answer(text: bytes, type_: str | None) -> Any:
    """Return a JSON answer; None for an empty answer, and for the output of a command."""
    return None if not text.strip() or "stream" in (type_ or "") else json.loads(text)


_STOPPING = ("transport is closing", "containerd.sock")
"""What an engine says that has lost its containerd, as it does when it stops (measured: Docker
20.10 refused 23 requests so in six restarts)."""


def raise_refusal(status: int, text: bytes) -> None:
    """Raise `GoneError` or `RefusedError` with the engine's message, if it refused a request, and
    `UnavailableError` if it is about to stop."""
    if status < 400:
        return
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        message = text.decode(errors="replace")
    message = " ".join(message.split()) or f"status {status}"
    if status >= 500 and any(sign in message for sign in _STOPPING):
        raise UnavailableError(f"the Docker engine is stopping: {message}")
    raise (GoneError if status == 404 else RefusedError)(message)
