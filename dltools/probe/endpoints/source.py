"""One serving container's endpoint: found, scraped, and turned into windows of response times."""

from __future__ import annotations

import http.client
import re
import socket
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from dltools.probe.endpoints.servers import SERVERS, Server
from dltools.probe.endpoints.text import Scrape, bucket_changes, change, parse, quantile
from dltools.probe.endpoints.where import endpoint_urls
from dltools.probe.progress.base import Point
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint

_TIMEOUT_S = 0.5
_LARGEST = 4 << 20
_LONGEST_NAME = 200
_RETRY_S = 60.0
_SOURCE = "prometheus"

_GENERIC = re.compile(
    r"(?=.*(?:request|inference|predict|response|latency))(?=.*(?:latency|duration|time|seconds))"
    r"(?P<base>.*?(?P<unit>_seconds|_ms|_milliseconds|_us|_microseconds))_sum$"
)
_UNITS = {"_ms": 1e-3, "_milliseconds": 1e-3, "_us": 1e-6, "_microseconds": 1e-6}
_NOT_REQUESTS = ("go_", "python_", "process_", "prometheus_", "promhttp_", "net_", "gc_")


class EndpointSource(ProgressSource):
    """Points over the time between two readings: mean, median and 99th percentile of the response
    time, requests and tokens a second, and the queue's length now."""

    needs_two_readings = True

    def __init__(self, candidates: Sequence[str], *, wanted: bool) -> None:
        """`candidates` are the URLs to try, see `where`; `wanted` says that a label named them, so
        that their failing is worth a `gap`."""
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
        """Ask no more: another container may get the address."""
        self._begin(())
        return []

    def restart(self, target: Target) -> None:
        """Begin anew: the server counts from zero, maybe at another address."""
        self._begin(endpoint_urls(target))

    def _scrape(self, now: float) -> Scrape | None:
        if self._url is None:
            if now - self._tried < _RETRY_S:
                return None
            self._tried = now
        for url in [self._url] if self._url else self._candidates:
            try:
                text = _get(url)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if self._wanted or self._url is not None:
                    self.gap = f"endpoint {url}: {str(error)[:60] or type(error).__name__}"
                self._url, self._before = None, None
                continue
            scrape = parse(text)
            if scrape.values or scrape.buckets:
                self._url, self.gap = url, None
                return scrape
            if self._wanted:
                self.gap = f"endpoint {url}: no metrics there"
        return None


def window(before: Scrape, after: Scrape, seconds: float) -> list[Point]:
    """Return the points between two scrapes `seconds` apart; none after a restart of the server."""
    server = _server(after)
    if server is None:
        return []
    points: list[Point] = []

    def add(metric: str, value: float, original: str) -> None:
        points.append(Point(metric, value, None, None, _SOURCE, original))

    count = change(before, after, server.count)
    total = change(before, after, server.total)
    fell = total is None and server.total in after.series
    if count is not None and not fell:
        add("request_rate", count / seconds, server.count)
        if count > 0 and total is not None:
            add("latency_seconds", total * server.unit / count, server.total)
            rises = bucket_changes(before, after, server.histogram)
            for name, share in (("latency_p50_seconds", 0.5), ("latency_p99_seconds", 0.99)):
                found = quantile(share, {}, rises)
                if found is not None:
                    add(name, found * server.unit, f"{server.histogram}_bucket")
    tokens = change(before, after, server.tokens)
    if tokens is not None and not fell:
        add("token_rate", tokens / seconds, server.tokens)
    if server.queue in after.values:
        add("queue_length", after.values[server.queue], server.queue)
    return points


def _server(scrape: Scrape) -> Server | None:
    for server in SERVERS:
        if server.total in scrape.values or (server.count and server.count in scrape.values):
            return server
    best: tuple[float, Server] | None = None
    for name in scrape.values:
        match = _GENERIC.match(name) if len(name) <= _LONGEST_NAME else None
        count = f"{name.removesuffix('_sum')}_count"
        if match is None or name.startswith(_NOT_REQUESTS) or count not in scrape.values:
            continue
        base = name.removesuffix("_sum")
        found = Server("other", name, count, _UNITS.get(match["unit"], 1.0), histogram=base)
        if best is None or scrape.values[count] > best[0]:
            best = (scrape.values[count], found)
    return best[1] if best else None


class _Socket(socket.socket):
    """A socket whose reads end at one time: a timeout alone begins anew with every byte."""

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


def _get(url: str) -> str:
    """Return the text behind a URL: no redirects, no proxies, 4 MiB and half a second at most
    (more only to look up a name). Where the answer does not say how long it is, a last line
    without an end is left out: it may be cut.

    Raises OSError, HTTPException or ValueError.
    """
    until = time.monotonic() + _TIMEOUT_S
    parts = urlsplit(url)
    connection = _Connection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
    connection.until = until
    try:
        query = f"?{parts.query}" if parts.query else ""
        connection.request("GET", (parts.path or "/") + query, headers={"Accept": "text/plain"})
        response = connection.getresponse()
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
    finally:
        connection.close()
