"""Requests to a Docker engine on another machine, over TCP or TLS, through the package docker.

`connect` takes this way, and imports it late: the package takes long to import.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

from docker.api.client import APIClient

from dltools.engine.docker.transport import (
    CUT_OFF,
    LARGEST,
    TIMEOUT_S,
    Flow,
    Params,
    Transport,
    connection_errors,
    parse_answer,
    pieces,
    raise_refusal,
)


class DockerClient(APIClient):  # type: ignore[misc]
    """A client that keeps to its own authority.

    The package requests prefers that of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE to a session's own.
    """

    server = ""

    def send(self, request: Any, **how: Any) -> Any:
        """Send a request, and remember who answers."""
        answer = super().send(request, **how)
        self.server = str(answer.headers.get("Server") or "")
        return answer

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        """Return what holds for a request: the session's authority, unless it names one."""
        own = self.verify if verify is None else verify
        return super().merge_environment_settings(url, proxies, stream, own, cert)


class Remote(Transport):
    """Requests through docker-py's client: a session of the package requests that knows TLS."""

    def __init__(self, where: str, settings: Mapping[str, Any]) -> None:
        """Connect, with the certificates in `settings`, else those that the environment names.

        Raises the errors of the methods.
        """
        from docker.utils import kwargs_from_env
        from docker.utils.config import load_general_config

        super().__init__()
        self._where = where
        with connection_errors(self._where, Exception):
            found = dict(settings) or kwargs_from_env({**os.environ, "DOCKER_HOST": where})
            self._session = DockerClient(version="auto", timeout=TIMEOUT_S, **found)
            self._session.headers.update(load_general_config().get("HttpHeaders") or {})
        self.server = self._session.server

    def _answer(self, method: str, path: str, params: Params, body: Any) -> Any:
        with connection_errors(self._where, Exception):
            response = self._ask(method, path, params, body)
            return parse_answer(response.content, response.headers.get("Content-Type"))

    def chunks(self, path: str, params: Params, quiet_s: float | None = 0.0) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; see `Transport`."""
        response = self._stream(path, params, quiet_s)
        return pieces(self._where, _body(response), Exception)

    def _stream(self, path: str, params: Params, quiet_s: float | None) -> Any:
        """Return the answer to a GET request, which keeps quiet while nothing happens."""
        with connection_errors(self._where, Exception):
            response = self._ask("GET", path, params, is_stream=True)
            if quiet_s != 0 and (connection := _socket(response)) is not None:
                connection.settimeout(quiet_s)
        return response

    def _ask(
        self, method: str, path: str, params: Params, body: Any = None, *, is_stream: bool = False
    ) -> Any:
        """Make a request and return its answer, unless it is a refusal."""
        response = self._session.request(
            method,
            f"{self._session.base_url}/v{self._session.api_version}{path}",
            params=dict(params),
            json=None if method == "GET" else body or {},
            stream=is_stream,
            timeout=TIMEOUT_S,
        )
        if response.status_code >= 400:
            raise_refusal(response.status_code, response.content)
        return response

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long."""
        return _RemoteFlow(self._stream(path, params, None))


def _socket(response: Any) -> socket.socket | None:
    """Return the socket that an answer comes from, None where it has ended. The connection of an
    answer that ends with it has let go of it, so that it is found as docker-py does."""
    try:
        found: socket.socket = response.raw._fp.fp.raw._sock
    except AttributeError:
        return None
    return found


def _body(response: Any) -> Iterator[bytes]:
    """Yield the body of an answer as it comes. The package requests does so for chunks alone: of an
    answer that ends with its connection, as proxies give, it would yield nothing before."""
    if response.raw.chunked:
        yield from response.iter_content(chunk_size=None)
        return
    answer = response.raw._fp
    while data := answer.read1(1 << 16):
        yield data
    if answer.length:
        raise ConnectionError(CUT_OFF)


class _RemoteFlow:
    """A stream that its own thread reads; the thread waits while much is to be taken."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._received = bytearray()
        self._is_closed = False
        self._room = threading.Condition()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return self._is_closed or not self._thread.is_alive()

    def take(self) -> bytes:
        with self._room:
            came = bytes(self._received)
            self._received.clear()
            self._room.notify()
        return came

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def close(self) -> None:
        """Wake the thread, which may wait for room or for the engine, and let it end."""
        with self._room:
            self._is_closed = True
            self._received.clear()
            self._room.notify()
        if (connection := _socket(self._response)) is not None:
            with suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)

    def _pump(self) -> None:
        with suppress(Exception), closing(self._response):  # a connection that breaks has ended
            for data in _body(self._response):
                with self._room:
                    self._room.wait_for(lambda: self._is_closed or len(self._received) < LARGEST)
                    if self._is_closed:
                        return
                    self._received += data
