"""Fetching the text behind a URL, within a short time and of a bounded length."""

from __future__ import annotations

import http.client
import socket
import time
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 0.5
_LARGEST = 4 << 20


def fetch(url: str) -> str:
    """Return the text behind a URL: no redirects, no proxies, 4 MiB and `TIMEOUT_S` at most (more
    only to look up a name).

    Raises OSError, HTTPException or ValueError.
    """
    until = time.monotonic() + TIMEOUT_S
    parts = urlsplit(url)
    connection = _Connection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    connection.until = until
    try:
        query = f"?{parts.query}" if parts.query else ""
        connection.request("GET", (parts.path or "/") + query, headers={"Accept": "text/plain"})
        return _text_of(connection.getresponse(), until)
    finally:
        connection.close()


def _text_of(response: http.client.HTTPResponse, until: float) -> str:
    """Return the text of an answer. If the answer does not say how long it is, a last line without
    an end is left out: it may be cut."""
    if response.status != 200:
        raise ValueError(f"status {response.status}")
    data = b""
    while chunk := response.read1(1 << 16):
        data += chunk
        if len(data) > _LARGEST:
            raise ValueError("more than 4 MiB")
        if time.monotonic() > until:
            raise TimeoutError("timed out")
    if response.length:
        raise http.client.IncompleteRead(data, response.length)
    if response.length is None and not response.chunked:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "replace")


class _Socket(socket.socket):
    """A socket whose reads end at a fixed time: a timeout alone begins again with every byte."""

    until = 0.0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.settimeout(left)
        return super().recv_into(*args, **kwargs)


class _Connection(http.client.HTTPConnection):
    until = 0.0

    def connect(self) -> None:
        super().connect()
        made = _Socket(fileno=self.sock.detach())
        made.settimeout(self.timeout)
        made.until, self.sock = self.until, made
