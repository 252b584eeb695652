"""Response times with their unit, a word for latency beside them.

`latency: 12.3 ms`, `inference time: 8.2ms`, `p99 latency = 35 ms`, `request_time=0.012`,
`"latency_ms": 12.1`, TorchServe's `PredictionTime.Milliseconds:12.3`, Gin's access lines, and what
servers of language models are measured by: `Mean TTFT (ms): 120.5`. Values are in seconds:
`latency_seconds`, `latency_p99_seconds`, `latency_first_token_seconds`, `latency_token_seconds`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex

UNITS = {
    "ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0,
    "nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "millis": 1e-3,
    "msec": 1e-3, "usec": 1e-6, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
}  # fmt: skip
UNIT = "|".join(UNITS)
_WORD = (
    r"latency|response[ _-]?time|request[ _-]?time|inference[ _-]?time|prediction[ _-]?time"
    r"|inference[ _-]?latency|request[ _-]?duration|response[ _-]?duration|predict[ _-]?time"
    r"|service[ _-]?time|serving[ _-]?time|e2e[ _-]?latency|ttft|tpot"
)
_OF_TOKENS = {"ttft": "first_token_", "tpot": "token_"}
"""Times to the first token, and for each token of the output."""

_QUANTILE = r"(?P<{0}>p\d{{1,3}}(?:\.\d+)?|mean|avg|average|max|min|median)"
_NAMED = Regex(
    rf"(?<![\w])(?:{_QUANTILE.format('q1')}[ _-])?(?:\w+[ _.])?(?P<word>{_WORD})"
    rf"(?:[ _-]?\(?{_QUANTILE.format('q2')}\)?)?(?:[ _(\[]{{0,9}}(?P<unit1>{UNIT})[)\]]?)?['\"]?"
    rf"\s*(?:(?:is|was|of)\s*)?(?:[:=]\s*)?['\"]?(?P<value>{N})\s*(?P<unit2>{UNIT})?"
    r"(?![\w.]|\s{2,}[\d.]+(?:[mun]?s\b|%))",
    re.IGNORECASE,
)
"""A time with a name. In a row of more times it is a load generator's: what others answered."""

_ALONE = (
    Regex(rf"\b(?P<word>PredictionTime)\.(?P<unit>Milliseconds):(?P<value>{N})\|", re.IGNORECASE),
    Regex(
        r"\[(?P<word>GIN)\].*\|\s*\d{1,3}\s*\|\s*(?:(?P<hours>\d{1,9})h)?(?:(?P<minutes>\d{1,9})m)?"
        rf"(?P<value>{N})(?P<unit>ns|us|\u00b5s|ms|s)\s*\|",
        re.IGNORECASE,
    ),
    Regex(
        r"^(?=.*(?:HTTP/|\")).*(?<![\w.])(?P<word>rt|request_time|upstream_response_time)="
        rf"\"?(?P<value>{N})\"?(?![\w.])",
        re.IGNORECASE,
    ),
    Regex(
        r"^(?=.*\b(?:request|inference|prediction|GET|POST(?!-)|PUT|query|generate\w*)\b)"
        r"(?!.*(?:epoch|step)).*\b(?P<word>took|served in|completed in|finished in|processed in) "
        rf"(?P<value>{N})\s*(?P<unit>{UNIT})\b",
        re.IGNORECASE,
    ),
)
"""Lines that say one time: of TorchServe, Gin, proxies, and programs that say what took it."""

_WORDS = (
    "latency", "response", "request", "inference", "predict", "service", "serving", "duration",
    "[gin]", "ed in ", "took ", "rt=", "ttft", "tpot",
)  # fmt: skip


class Log:
    """A serving container's log."""

    name: ClassVar[str] = "latency"
    partial: ClassVar[bool] = True

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may say a response time."""
        may_say = any(map(lower.__contains__, _WORDS))
        return may_say and any(form.search(lower) for form in (_NAMED, *_ALONE))

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if points := self._named(line):
            return points
        for form in _ALONE:
            if match := form.search(line):
                said = match.groupdict()
                seconds = float(said["value"]) * UNITS[(said.get("unit") or "s").lower()]
                seconds += 3600 * int(said.get("hours") or 0) + 60 * int(said.get("minutes") or 0)
                return [self._point("", seconds, said["word"])] if seconds >= 0 else []
        return []

    def _named(self, line: str) -> list[Point]:
        points: dict[str, Point] = {}
        for match in _NAMED.finditer(line):
            unit = match["unit2"] or match["unit1"]
            value = float(match["value"])
            if unit is None or not value >= 0:
                continue
            quantile = (match["q1"] or match["q2"] or "").lower()
            point = self._point(quantile, value * UNITS[unit.lower()], match["word"])
            points.setdefault(point.metric, point)
        return list(points.values())

    def _point(self, quantile: str, seconds: float, original: str) -> Point:
        part = {"mean": "", "avg": "", "average": "", "median": "p50"}.get(quantile, quantile)
        part = _OF_TOKENS.get(original.lower(), "") + (f"{part}_" if part else "")
        metric = f"latency_{part}seconds"
        return Point(metric, seconds, None, None, self.name, original)
