"""Computes response times between two scrapes of a server; called by `scraper`.

A scrape is Prometheus text: cumulative series by labels, and the buckets of histograms. The series
are those of well-known serving programs, or any histogram whose name looks like response times.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from dltools.probe.progress.base import Point


@dataclass(frozen=True, slots=True)
class Server:
    """The names of a serving program's series, "" for none. `total` is the time spent on requests,
    in `unit` seconds, `count` the number of requests. `histogram`: the histogram that has both as
    its sum and count."""

    name: str
    total: str
    count: str
    unit: float = 1.0
    histogram: str = ""
    queue: str = ""
    tokens: str = ""


SERVERS = (
    Server("triton", "nv_inference_request_duration_us", "nv_inference_request_success", 1e-6,
           queue="nv_inference_pending_request_count"),
    Server("torchserve", "ts_inference_latency_microseconds", "ts_inference_requests_total", 1e-6),
    Server("vllm", "vllm:e2e_request_latency_seconds_sum", "vllm:e2e_request_latency_seconds_count",
           histogram="vllm:e2e_request_latency_seconds", queue="vllm:num_requests_waiting",
           tokens="vllm:generation_tokens_total"),
    Server("tgi", "tgi_request_duration_sum", "tgi_request_duration_count",
           histogram="tgi_request_duration", queue="tgi_queue_size",
           tokens="tgi_request_generated_tokens_sum"),
    Server("tensorflow-serving", ":tensorflow:serving:request_latency_sum",
           ":tensorflow:serving:request_latency_count", 1e-6,
           histogram=":tensorflow:serving:request_latency"),
    Server("bentoml", "bentoml_service_request_duration_seconds_sum",
           "bentoml_service_request_duration_seconds_count",
           histogram="bentoml_service_request_duration_seconds"),
    Server("llama.cpp", "llamacpp:tokens_predicted_seconds_total", "",
           queue="llamacpp:requests_deferred", tokens="llamacpp:tokens_predicted_total"),
)  # fmt: skip

_SOURCE = "prometheus"
_LONGEST_NAME, _LONGEST_LINE = 200, 16_384
_LONGEST_S = 1.0
"""CPU seconds in which a text must be read. The parser takes time for the square of a line."""

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
    count = rise(before, after, server.count)
    total = rise(before, after, server.total)
    has_fallen = total is None and server.total in after.series
    if count is not None and not has_fallen:
        points.append(_point("request_rate", count / seconds, server.count))
        if count > 0 and total is not None:
            mean = total * server.unit / count
            points.append(_point("latency_seconds", mean, server.total))
            points += _quantiles(before, after, server)
    tokens = rise(before, after, server.tokens)
    if tokens is not None and not has_fallen:
        points.append(_point("token_rate", tokens / seconds, server.tokens))
    if server.queue in after.values:
        points.append(_point("queue_length", after.values[server.queue], server.queue))
    return points


def _quantiles(before: Scrape, after: Scrape, server: Server) -> list[Point]:
    rises = bucket_rises(before, after, server.histogram)
    quantiles = {metric: quantile(share, rises) for metric, share in _QUANTILES.items()}
    return [
        _point(metric, value * server.unit, f"{server.histogram}_bucket")
        for metric, value in quantiles.items()
        if value is not None
    ]


def _point(metric: str, value: float, original: str) -> Point:
    return Point(metric, value, None, None, _SOURCE, original)


def _server(scrape: Scrape) -> Server | None:
    for server in SERVERS:
        if server.total in scrape.values or (server.count and server.count in scrape.values):
            return server
    guesses = []
    for name in scrape.values:
        match = _GENERIC.match(name) if len(name) <= _LONGEST_NAME else None
        base = name.removesuffix("_sum")
        count = f"{base}_count"
        if match and not name.startswith(_NOT_REQUESTS) and count in scrape.values:
            unit = _UNITS.get(match["unit"], 1.0)
            guesses.append(Server("other", name, count, unit, histogram=base))
    return max(guesses, key=lambda guess: scrape.values[guess.count], default=None)


_Labels = frozenset[tuple[str, str]]

_SCRAPES = "/metrics"
"""Exporters that count requests by path count the scrapes, too, under this path."""


@dataclass(slots=True)
class Scrape:
    """One scrape. `series` maps a sample's name to its values by labels, `values` to their sum;
    `buckets` a histogram's name to its cumulative counts by labels (less `le`), by upper bound."""

    values: dict[str, float] = field(default_factory=dict)
    series: dict[str, dict[_Labels, float]] = field(default_factory=dict)
    buckets: dict[str, dict[_Labels, dict[float, float]]] = field(default_factory=dict)


def parse_metrics(text: str) -> Scrape:
    """Return the series of a text; lines that are no metrics are left out. Raises ValueError if
    there are too many."""
    scrape = Scrape()
    for name, labels, value in _samples(text):
        if not math.isfinite(value) or _SCRAPES in labels.values():
            continue  # NaN is an empty summary's quantile
        bound = labels.get("le")
        if name.endswith("_bucket") and bound is not None:
            try:
                upper = float(bound)
            except ValueError:
                continue
            if math.isnan(upper):
                continue
            of_name = scrape.buckets.setdefault(name.removesuffix("_bucket"), {})
            key = frozenset((label, text) for label, text in labels.items() if label != "le")
            of_name.setdefault(key, {})[upper] = value
        elif "quantile" not in labels:
            scrape.values[name] = scrape.values.get(name, 0.0) + value
            scrape.series.setdefault(name, {})[frozenset(labels.items())] = value
    return scrape


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    until = time.thread_time() + _LONGEST_S
    for line in text.splitlines():  # one by one: TYPE lines would change names
        if time.thread_time() > until:
            raise ValueError("takes too long to read")
        if line.startswith("#") or len(line) > _LONGEST_LINE:
            continue
        with suppress(Exception):  # no metric, or a whole number of hundreds of digits
            families = text_string_to_metric_families(f"{line}\n")
            yield from [(s.name, s.labels, float(s.value)) for f in families for s in f.samples]


def rise(before: Scrape, after: Scrape, name: str) -> float | None:
    """Return by how much a name's series rose, summed over labels. A new series counts from 0, a
    series that has gone does not count. None if the name is missing or a series fell."""
    series = after.series.get(name)
    if series is None:
        return None
    old = before.series.get(name, {})
    rises = [value - old.get(labels, 0.0) for labels, value in series.items()]
    return None if min(rises) < 0 else sum(rises)


def bucket_rises(before: Scrape, after: Scrape, name: str) -> dict[float, float]:
    """Return by how much a histogram's cumulative counts rose, by upper bound."""
    old, rises = before.buckets.get(name, {}), dict[float, float]()
    for labels, counts in after.buckets.get(name, {}).items():
        of_labels = old.get(labels, {})
        for bound, count in counts.items():
            rises[bound] = rises.get(bound, 0.0) + count - of_labels.get(bound, 0.0)
    return rises


def quantile(share: float, rises: dict[float, float]) -> float | None:
    """Return a quantile from a histogram's cumulative counts by upper bound.

    It is computed like Prometheus' histogram_quantile: linear within a bucket, and the last finite
    bound beyond it. None if nothing was counted, or if there is no bucket to infinity.
    """
    bounds = sorted(rises)
    counts = [rises[bound] for bound in bounds]
    if not counts or counts[-1] <= 0 or bounds[-1] != math.inf:
        return None
    rank = share * counts[-1]
    for number, (bound, count) in enumerate(zip(bounds, counts, strict=True)):
        if count < rank:
            continue
        below, lower = (counts[number - 1], bounds[number - 1]) if number else (0.0, 0.0)
        if math.isinf(bound):
            return lower if number else None
        if not number and bound <= 0:
            return bound
        return (
            lower + (bound - lower) * (rank - below) / (count - below) if count > below else bound
        )
    return None
