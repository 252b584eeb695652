"""What every extractor takes and gives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

LONGEST_LINE = 16_384
"""Characters of a line that are looked at: a million-character line costs no more."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Point:
    """One thing a job reported in one line; `source` names the extractor."""

    metric: str
    value: float
    step: int | None
    epoch: float | None
    source: str


class Extractor(Protocol):
    """Finds points in a line of text. It never raises on text."""

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""


def pieces(raw: bytes) -> list[str]:
    """Return what one log entry shows: its lines, bars redrawn by carriage return apart, without
    escape codes, cut to `LONGEST_LINE`; bytes that are no UTF-8 are replaced."""
    text = raw.decode(errors="replace").replace("\r", "\n")
    return [
        _ESCAPES.sub("", line[:LONGEST_LINE])
        for line in text.split("\n")
        if not line.isspace() and line
    ]


NUMBER = (
    r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?"
    r"|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
)
"""A number as programs print it: thousands separators, exponents, nan and inf in any case."""


def number(text: str) -> float:
    """Return the value of what `NUMBER` matched."""
    return float(text.replace(",", ""))
