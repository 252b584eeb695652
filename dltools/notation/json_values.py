"""JSON that any program can read: numbers are finite; NaN and the infinities, for which JSON has no
word, become strings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def table_in(data: Any, *path: str) -> Mapping[str, Any]:
    """Return the object inside others that has this path, {} where there is none."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def table_from(text: bytes | str) -> dict[str, Any]:
    """Return the object that a text stands for, {} where it stands for none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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


_WORDS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def to_json_number(value: float) -> float | str:
    """Return a number as JSON can hold it: "NaN", "Infinity" or "-Infinity" where it is not
    finite."""
    return value if math.isfinite(value) else _WORDS[str(value)]


def from_json_number(value: float | str) -> float:
    """Return the number that `to_json_number` was given. Texts of numbers are read too.

    Raises ValueError or TypeError for what is no number, OverflowError for an integer that is too
    large.
    """
    if isinstance(value, bool):
        raise TypeError(f"not a number: {value!r}")
    return float(value)
