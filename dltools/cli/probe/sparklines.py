"""The course of a metric in a few characters, and whether it gets better."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

_BARS = "▁▂▃▄▅▆▇█"


def trend(points: Iterable[float], aim: str) -> str:
    """Return a colour: green while the newest quarter is better than the one before, else yellow;
    red for what is no longer finite."""
    values = list(points)
    if not math.isfinite(values[-1]):
        return "red"
    count = max(1, len(values) // 4)
    new = [value for value in values[-count:] if math.isfinite(value)]
    old = [value for value in values[-2 * count : -count] if math.isfinite(value)]
    if not new or not old:
        return ""
    change = sum(new) / len(new) - sum(old) / len(old)
    return "green" if (change < 0) == (aim == "min") and change != 0 else "yellow"


def sparkline(points: Iterable[float], width: int) -> str:
    """Return the course of some values as at most `width` bars; x is what is not finite."""
    values = list(points)
    if len(values) > width:  # means of equal stretches
        edges = [round(index * len(values) / width) for index in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "x" * len(values)
    low, high = min(finite), max(finite)
    step = high / (len(_BARS) - 1) - low / (len(_BARS) - 1) or 1.0
    return "".join(
        _BARS[round(value / step - low / step)] if math.isfinite(value) else "x" for value in values
    )
