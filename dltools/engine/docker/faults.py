"""What goes wrong between here and a Docker engine, as errors of ours, in the same words whatever
the way to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dltools.engine.interface import GoneError, RefusedError
from dltools.errors import AccessError, UnavailableError

NO_HTTP = "no answer, or not one of HTTP"
CUT_OFF = "the answer was cut off"


@contextmanager
def connection_errors(where: str) -> Iterator[None]:
    """Turn an error in a connection to the engine at an address (OSError, ValueError) into one of
    ours."""
    try:
        yield
    except (OSError, ValueError) as error:
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
    "Name or service not known": "no such host",
    "name resolution": "no such host",
    "No address associated": "no such host",
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
    """Raise `GoneError` or `RefusedError` with an engine's message that has refused a request, and
    `UnavailableError` if it is about to stop."""
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
