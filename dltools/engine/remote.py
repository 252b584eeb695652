"""Requests to a Docker engine elsewhere: docker-py serves TCP, TLS and SSH."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from dltools.engine.transport import (
    LARGEST,
    NONE,
    TIMEOUT_S,
    Flow,
    Params,
    decoded,
    raise_for,
    unreachable,
)


class Remote:
    """Requests through docker-py."""

    is_local = False

    def __init__(self, where: str, settings: Mapping[str, Any]) -> None:
        """Connect. Raises as the methods do."""
        from docker.api.client import APIClient
        from docker.utils import kwargs_from_env

        self._where = where
        with unreachable(self._where, Exception):
            found = dict(settings) or kwargs_from_env() or {"base_url": where}
            self._api = APIClient(version="auto", timeout=TIMEOUT_S, **found)

    def json(self, method: str, path: str, params: Params = NONE, body: Any = None) -> Any:
        """Make a request and return its JSON answer, None for an empty one."""
        with unreachable(self._where, Exception):
            url = self._api._url(path)
            if method == "GET":
                response = self._api._get(url, params=dict(params))
            else:
                response = self._api._post_json(url, data=body, params=dict(params))
            text = response.content
        raise_for(response.status_code, text)
        return decoded(text, response.headers.get("Content-Type"))

    def chunks(self, path: str, params: Params, *, endless: bool = False) -> Iterator[bytes]:
        """Make a GET request and yield what comes as it comes; `endless` waits for ever."""
        with unreachable(self._where, Exception):
            url = self._api._url(path)
            response = self._api._get(url, params=dict(params), stream=True)
            if response.status_code >= 400:
                raise_for(response.status_code, response.content)
            if endless:
                self._api._disable_socket_timeout(self._api._get_raw_response_socket(response))
        found: Iterator[bytes] = response.iter_content(chunk_size=None)
        return found

    def follow(self, path: str, params: Params) -> Flow:
        """Make a GET request whose answer goes on for long."""
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
                    self._room.wait_for(lambda: len(self._came) < LARGEST)
                    self._came += data
