"""Numbers that JSON has no word for: NaN and the infinities become strings."""

from __future__ import annotations

import math

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
