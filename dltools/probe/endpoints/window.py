"""Response times over the time between two scrapes of a server."""

from __future__ import annotations

import re

from dltools.probe.endpoints.servers import SERVERS, Server
from dltools.probe.endpoints.text import Scrape, bucket_changes, change, quantile
from dltools.probe.progress.base import Point

_SOURCE = "prometheus"
_LONGEST_NAME = 200
_QUANTILES = {"latency_p50_seconds": 0.5, "latency_p99_seconds": 0.99}

_GENERIC = re.compile(
    r"(?=.*(?:request|inference|predict|response|latency))(?=.*(?:latency|duration|time|seconds))"
    r"(?P<base>.*?(?P<unit>_seconds|_ms|_milliseconds|_us|_microseconds))_sum$"
)
_UNITS = {"_ms": 1e-3, "_milliseconds": 1e-3, "_us": 1e-6, "_microseconds": 1e-6}
_NOT_REQUESTS = ("go_", "python_", "process_", "prometheus_", "promhttp_", "net_", "gc_")


def window(before: Scrape, after: Scrape, seconds: float) -> list[Point]:
    """Return the points between two scrapes `seconds` apart; none after a restart of the server."""
    server = _server(after)
    if server is None:
        return []
    points = []
    count = change(before, after, server.count)
    total = change(before, after, server.total)
    has_fallen = total is None and server.total in after.series
    if count is not None and not has_fallen:
        points.append(_point("request_rate", count / seconds, server.count))
        if count > 0 and total is not None:
            mean = total * server.unit / count
            points.append(_point("latency_seconds", mean, server.total))
            points += _quantiles(before, after, server)
    tokens = change(before, after, server.tokens)
    if tokens is not None and not has_fallen:
        points.append(_point("token_rate", tokens / seconds, server.tokens))
    if server.queue in after.values:
        points.append(_point("queue_length", after.values[server.queue], server.queue))
    return points


def _quantiles(before: Scrape, after: Scrape, server: Server) -> list[Point]:
    rises = bucket_changes(before, after, server.histogram)
    found = {metric: quantile(share, rises) for metric, share in _QUANTILES.items()}
    return [
        _point(metric, value * server.unit, f"{server.histogram}_bucket")
        for metric, value in found.items()
        if value is not None
    ]


def _point(metric: str, value: float, original: str) -> Point:
    return Point(metric, value, None, None, _SOURCE, original)


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
