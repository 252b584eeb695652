"""JSON that can be written again: text is text, and numbers are finite."""

from __future__ import annotations

import json
import math
from typing import Any


def parse_json(text: bytes) -> Any:
    """Return a JSON value. Raises ValueError, also for NaN, for numbers that are too large, and for
    halves of surrogate pairs, which are no text; and RecursionError."""
    value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    if b"\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number
