"""Training, validation or test: the phase that a line says elsewhere than in a metric's name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dltools.probe.progress.base import Regex

PHASES = ("train", "val", "eval", "test")

_WORDS = Regex(
    r"(?<![\w./\\@=-])(train(?:ing)?|val(?:i(?:d(?:ation|ating)?)?)?|eval(?:uation|uating|uate)?"
    r"|test(?:ing)?|dev)(?: set)?(?![\w./@]|-\w| ?=|\(s\)|\s(?:time|samples|size|batch_size)\b)",
    re.IGNORECASE,
)
_MEANS = {"d": "val", "v": "val", "e": "eval", "t": "test"}


class PhaseWord(NamedTuple):
    """A phase, and where its word begins."""

    phase: str
    start: int


def phase_words(line: str, lower: str) -> list[PhaseWord]:
    """Return the words of a line that name a phase, in order."""
    if "train" not in lower and "val" not in lower and "test" not in lower and "dev" not in lower:
        return []
    return [PhaseWord(_phase(m[1]), m.start()) for m in _WORDS.finditer(line)]


def phase_before(words: Iterable[PhaseWord], at: int) -> str:
    """Return the phase nearest on the left of a place in the line, "" for none."""
    found = ""
    for word in words:
        if word.start >= at:
            break
        found = word.phase
    return found


def _phase(word: str) -> str:
    lower = word.lower()
    return "train" if lower.startswith("train") else _MEANS[lower[0]]
