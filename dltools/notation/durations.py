"""Durations as people write them: 30, 1.5s, 200ms, 10m, 2h, 1d."""

from __future__ import annotations

import re
from collections.abc import Collection

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)\s*([a-z]+)?", re.IGNORECASE)


def parse_duration(text: str, units: Collection[str] = ("s", "m", "h", "d")) -> float:
    """Return the seconds of a duration: a number with one of the units, or of seconds without.

    The units are among ms, s, m, h and d; their case does not matter. Raises ValueError.
    """
    match = _DURATION.fullmatch(text.strip())
    unit = (match[2] or "s").lower() if match else ""
    if match is None or unit not in units:
        raise ValueError(f"{text!r} is not a duration")
    number = float(match[1])
    return number / 1000 if unit == "ms" else number * _SECONDS[unit]
