"""Servers of language models and Triton's perf_analyzer: `... generation throughput: 78 tokens/s`.

vLLM and SGLang print throughput and queue every few seconds: token_rate, running_requests,
queue_length and, by Little's law, the mean time between two tokens of a request,
latency_token_seconds: running requests by tokens per second. llama.cpp and TGI print the times of
each request: latency_seconds, latency_token_seconds, latency_first_token_seconds, queue_seconds.
The lines may stand beside those of a training that generates with such a server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from dltools.probe.progress.base import Point, Regex

_N = r"(\d{1,15}(?:\.\d{1,15})?)"
_VLLM = Regex(
    rf"Avg generation throughput: {_N} tokens/s, Running: (\d{{1,9}}) reqs, "
    r"(?:Swapped: \d+ reqs, )?(?:Waiting|Pending): (\d{1,9}) reqs"
)
_SGLANG = Regex(
    rf"Decode batch\b.*?#running-req: (\d{{1,9}}),.*?gen throughput \(token/s\): {_N}"
    r"(?:,.*?#queue-req: (\d{1,9}))?"
)
_LLAMA = Regex(
    rf"(?<!\w)(prompt eval|eval|total) time = +{_N} ms(?: / +\d+ (?:tokens|runs))"
    rf"(?: +\( *{_N} ms per token, *{_N} tokens per second\))?"
)
_LLAMA_NOW = Regex(rf"print_timing: .*\bn_\w+ = +\d+, tg = +{_N} t/s")
_SPAN = Regex(
    rf"\b(total_time|queue_time|time_per_token)(?:=|\":\s?)\"{_N}(ns|\u00b5s|\u03bcs|us|ms|s)\""
)
_SPANS = {
    "total_time": "latency_seconds",
    "time_per_token": "latency_token_seconds",
    "queue_time": "queue_seconds",
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0}
_TRITON_RATE = Regex(rf"^\s+Throughput: {_N} infer/sec")
_TRITON_TIME = Regex(rf"^\s+(Avg|p\d\d) latency: {_N} usec")

_Named = tuple[str, float, str]
"""A metric, its value, and its name as printed."""


class Log:
    """The lines of a server."""

    name: ClassVar[str] = "serving"
    partial: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("hroughput", "time =", "total_time", "tg =", " latency: ")

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "hroughput" in line:
            found = _rates(line)
        elif "time" in line or "tg =" in line:
            found = _llama(line) if " ms" in line or " t/s" in line else _spans(line)
        elif " latency: " in line and (match := _TRITON_TIME.search(line)):
            part = "" if match[1] == "Avg" else f"{match[1]}_"
            found = [(f"latency_{part}seconds", float(match[2]) * 1e-6, f"{match[1]} latency")]
        else:
            return []
        return [Point(m, value, None, None, self.name, original) for m, value, original in found]


def _rates(line: str) -> Iterable[_Named]:
    """Return the throughput and the queue of a server."""
    if match := _VLLM.search(line):
        tokens, running, waiting = float(match[1]), float(match[2]), float(match[3])
        rate, now, queue = "Avg generation throughput", "Running", "Waiting"
    elif match := _SGLANG.search(line):
        tokens, running = float(match[2]), float(match[1])
        waiting = float(match[3] or 0)
        rate, now, queue = "gen throughput (token/s)", "#running-req", "#queue-req"
    elif match := _TRITON_RATE.search(line):
        return [("request_rate", float(match[1]), "Throughput")]
    else:
        return []
    found = [
        ("token_rate", tokens, rate),
        ("running_requests", running, now),
        ("queue_length", waiting, queue),
    ]
    if tokens > 0 and running > 0:
        found.append(("latency_token_seconds", running / tokens, f"{now} by {rate}"))
    return found


def _llama(line: str) -> Iterable[_Named]:
    """Return the times of a request to llama.cpp."""
    if match := _LLAMA_NOW.search(line):
        return [("token_rate", float(match[1]), "tg")]
    match = _LLAMA.search(line)
    if match is None:
        return []
    original, seconds = f"{match[1]} time", float(match[2]) / 1000
    if match[1] == "total":
        return [("latency_seconds", seconds, original)]
    if match[3] is None:
        return []
    if match[1] == "prompt eval":
        return [("latency_first_token_seconds", seconds, original)]
    return [
        ("latency_token_seconds", float(match[3]) / 1000, "ms per token"),
        ("token_rate", float(match[4]), "tokens per second"),
    ]


def _spans(line: str) -> Iterable[_Named]:
    """Return the times of a request to TGI, or to its sister for embeddings."""
    if "total_time" not in line:
        return []
    found = {
        _SPANS[match[1]]: (_SPANS[match[1]], float(match[2]) * _UNITS[match[3]], match[1])
        for match in _SPAN.finditer(line)
    }
    return list(found.values()) if "latency_seconds" in found else []
