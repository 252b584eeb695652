"""Requests to a Docker engine on another machine, over TCP or TLS, through the package docker.

`connect` takes this way, and imports it late: the package takes long to import.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from docker.api.client import APIClient

from dltools.engine.docker.transport import (
    LARGEST,
    NO_PARAMS,
    TIMEOUT_S,
    Flow,
    Params,
    connection_errors,
    parse_answer,
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


class Remote:
    """Requests through docker-py's client: a session of the package requests that knows TLS."""

    is_local = False

    repeats = 0

    def __init__(self, where: str, settings: Mapping[str, Any]) -> None:
        """Connect, with the certificates in `settings`, else those that the environment names.

        Raises the errors of the methods.
        """
        from docker.utils import kwargs_from_env
        from docker.utils.config import load_general_config

        self._where = where
        with connection_errors(self._where, Exception):
            found = dict(settings) or kwargs_from_env({**os.environ, "DOCKER_HOST": where})
            self._session = DockerClient(version="auto", timeout=TIMEOUT_S, **found)
            self._session.headers.update(load_general_config().get("HttpHeaders") or {})
        self.server = self._session.server

    def json(self, method: str, path: str, params: Params = NO_PARAMS, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""
        with connection_errors(self._where, Exception):
            response = self._ask(method, path, params, body)
        return parse_answer(response.content, response.headers.get("Content-Type"))

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; `endless` waits for ever."""
        with connection_errors(self._where, Exception):
            response = self._ask("GET", path, params, is_stream=True)
        if endless and (connection := response.raw.connection) is not None:
            connection.sock.settimeout(None)  # the engine keeps quiet while nothing happens
        found: Iterator[bytes] = response.iter_content(chunk_size=None)
        return found

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
        return _RemoteFlow(self.chunks(path, params, endless=True))


class _RemoteFlow:
    """A stream that its own thread reads; the thread waits while much is to be taken."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._received = bytearray()
        self._room = threading.Condition()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def take(self) -> bytes:
        with self._room:
            came = bytes(self._received)
            self._received.clear()
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
                    self._room.wait_for(lambda: len(self._received) < LARGEST)
                    self._received += data
