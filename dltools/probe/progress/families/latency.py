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
    "msec": 1e-3, "usec": 1e-6, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "m": 60.0,
}  # fmt: skip
UNIT = "|".join(unit for unit in UNITS if unit != "m")
_WORD = (
    r"latency|response[ _-]?time|request[ _-]?time|inference[ _-]?time|prediction[ _-]?time"
    r"|inference[ _-]?latency|request[ _-]?duration|response[ _-]?duration|predict[ _-]?time"
    r"|service[ _-]?time|serving[ _-]?time|e2e[ _-]?latency|ttft|tpot"
)
_OF_TOKENS = {"ttft": "first_token_", "tpot": "token_"}
"""Times to the first token, and for each token of the output."""

_QUANTILE = r"(?P<{0}>p\d{{2,3}}(?:\.\d+)?|mean|avg|average|max|min|median)"
_NAMED = Regex(
    rf"(?<![\w])(?:{_QUANTILE.format('q1')}[ _-])?(?:\w+[ _.])?(?P<word>{_WORD})"
    rf"(?:[ _-]?\(?{_QUANTILE.format('q2')}\)?)?(?:[ _(\[]{{0,9}}(?P<unit1>{UNIT})[)\]]?)?['\"]?"
    rf"\s*(?:(?:is|was|of)\s*)?(?:[:=]\s*)?['\"]?(?P<value>{N})\s*(?P<unit2>{UNIT})?(?![\w.])",
    re.IGNORECASE,
)
_TOOK = Regex(
    rf"\b(?:took|served in|completed in|finished in|processed in) ({N})\s*({UNIT})\b", re.IGNORECASE
)
_REQUEST = Regex(
    r"\b(?:request|inference|prediction|GET|POST|PUT|query|generate\w*)\b", re.IGNORECASE
)
_SHORT = Regex(rf"(?<![\w.])(?:rt|request_time|upstream_response_time)=\"?({N})\"?(?![\w.])")
_SERVE = Regex(rf"\b(PredictionTime|HandlerTime)\.Milliseconds:({N})\|")
_GIN = Regex(rf"\[GIN\].*\|\s*\d{{3}}\s*\|\s*((?:\d+h)?(?:\d+m)?{N}(?:ns|us|\u00b5s|ms|s))\s*\|")
_GIN_PART = Regex(r"([\d.]{1,30})(h|ms|us|\u00b5s|ns|m|s)")


_WORTH = ("latency", "time", "duration", *_OF_TOKENS)
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
        return any(word in lower for word in _WORDS)

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        lower = line.lower()
        if any(word in lower for word in _WORTH) and (found := self._named(line)):
            return found
        if "| " in line and "[GIN]" in line and (match := _GIN.search(line)):
            seconds = sum(
                float(number) * {"h": 3600.0, **UNITS}[unit]
                for number, unit in _GIN_PART.findall(match[1])
            )
            return [self._point("", seconds, "latency")]
        if "rt=" in line or "time=" in line:
            match = _SHORT.search(line)
            if match and ("HTTP/" in line or '"' in line):
                return [self._point("", float(match[1]), "request_time")]
        if "ed in " in lower or "took " in lower:
            match = _TOOK.search(line)
            if match and _REQUEST.search(line) and "epoch" not in lower and "step" not in lower:
                seconds = float(match[1]) * UNITS[match[2].lower()]
                return [self._point("", seconds, "took")] if seconds >= 0 else []
        return []

    def _named(self, line: str) -> list[Point]:
        if match := _SERVE.search(line):
            if match[1] == "HandlerTime":
                return []
            return [self._point("", float(match[2]) / 1000, "PredictionTime")]
        found: dict[str, Point] = {}
        for match in _NAMED.finditer(line):
            unit = match["unit2"] or match["unit1"]
            value = float(match["value"])
            if unit is None or not value >= 0:
                continue
            quantile = (match["q1"] or match["q2"] or "").lower()
            point = self._point(quantile, value * UNITS[unit.lower()], match["word"])
            found.setdefault(point.metric, point)
        return list(found.values())

    def _point(self, quantile: str, seconds: float, original: str) -> Point:
        part = {"mean": "", "avg": "", "average": "", "median": "p50"}.get(quantile, quantile)
        part = _OF_TOKENS.get(original.lower(), "") + (f"{part}_" if part else "")
        metric = f"latency_{part}seconds"
        return Point(metric, seconds, None, None, self.name, original)
