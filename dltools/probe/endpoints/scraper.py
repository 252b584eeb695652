"""Scrapes the endpoint of a serving container at each sample: response times between two scrapes.

A scrape takes at most half a second, 4 MiB, and a second of CPU time, so that no server delays a
sample for long.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from dltools.probe.endpoints.where import endpoint_urls
from dltools.probe.endpoints.window import Scrape, parse_metrics, window
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint

_RETRY_S = 60.0


class EndpointSource(ProgressSource):
    """Points over the time between two readings: mean, median and 99th percentile of the response
    time, requests and tokens a second, and the queue's length now."""

    needs_two_readings = True

    def __init__(self, candidates: Sequence[str], *, wanted: bool) -> None:
        """Take the URLs to try, see `where`. `wanted`: a label named them, so that their failure is
        a `gap`."""
        self._wanted = wanted
        self._begin(candidates)

    def _begin(self, candidates: Sequence[str]) -> None:
        self._candidates = list(candidates)
        self._url: str | None = None
        self._tried = float("-inf")
        self._before: tuple[float, Scrape] | None = None
        self.gap = None

    @property
    def may_wait(self) -> bool:
        """Whether there is an address to ask."""
        return bool(self._candidates)

    def read(self, now: float, since: float = 0.0) -> list[TimedPoint]:
        """Scrape once, and return the points over the time since the scrape before."""
        del since
        scrape = self._scrape(now)
        if scrape is None:
            return []
        before, self._before = self._before, (now, scrape)
        if before is None or now <= before[0]:
            return []
        at = datetime.now(UTC)
        return [TimedPoint(at, point) for point in window(before[1], scrape, now - before[0])]

    def stop(self) -> list[TimedPoint]:
        """Stop scraping: another container may get the address."""
        self._begin(())
        return []

    def restart(self, target: Target) -> None:
        """Begin again: the server counts from zero, perhaps at another address."""
        self._begin(endpoint_urls(target))

    def _scrape(self, now: float) -> Scrape | None:
        if self._url is None:
            if now - self._tried < _RETRY_S:
                return None
            self._tried = now
        for url in [self._url] if self._url else self._candidates:
            try:
                scrape = parse_metrics(fetch(url))
            except (OSError, http.client.HTTPException, ValueError) as error:
                if self._wanted or self._url is not None:
                    self.gap = f"endpoint {url}: {str(error)[:60] or type(error).__name__}"
                self._url, self._before = None, None
                continue
            if scrape.values or scrape.buckets:
                self._url, self.gap = url, None
                return scrape
            if self._wanted:
                self.gap = f"endpoint {url}: no metrics there"
        return None


TIMEOUT_S = 0.5
_LARGEST = 4 << 20


def fetch(url: str) -> str:
    """Return the text behind a URL, without redirects and proxies, in at most 4 MiB and `TIMEOUT_S`
    (the lookup of a name may take longer).

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
    """Return the text of an answer. If the answer does not name its length, a last line without a
    newline is left out, because it may be cut."""
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
    """A socket whose reads end at a fixed time. A plain timeout begins again with every byte."""

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
