"""Finds the phase that a line names: training, validation or test; called by `named`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dltools.probe.progress.base import Regex
from dltools.probe.progress.prefix import own_start

_WORDS = Regex(
    r"(?<![\w./@=])(?<!\D-)(?<!^-)(?<![\w.:]\\)(train(?:ing|ed(?= with))?"
    r"|val(?:i(?:d(?:ation|ating|ate(?:d(?= with))?)?)?)?"
    r"|eval(?:uation|uating|uate(?:d(?= with))?)?"
    r"|test(?:ing)?|(?<!std )dev|CV(?= )|Saving dict(?= for))(?:[ -]set)?"
    r"(?![\w/@]|\.[^\s.]|-\w| ?=(?!\s?[{[(]|(?-i:[a-z]))|\(s\)"
    r"|\s(?:time|samples|size|batch_size)\b)",
    re.IGNORECASE,
)

_MEANS = {"c": "val", "d": "val", "v": "val", "e": "eval", "s": "eval", "t": "test"}


class PhaseWord(NamedTuple):
    """A phase, and where its word begins."""

    phase: str
    start: int


def phase_words(line: str, lower: str) -> list[PhaseWord]:
    """Return the words of a line that name a phase, in order."""
    is_result = "* " in lower and lower[own_start(line) :].lstrip()[:2] == "* "
    means = [PhaseWord("val", 0)] if is_result else []
    return [*means, *(PhaseWord(_phase(m[1]), m.start()) for m in _WORDS.finditer(line))]


def phase_before(words: Sequence[PhaseWord], at: int) -> str:
    """Return the phase nearest on the left of a place in the line, "" for none; of what an
    evaluation is says more than that it is one: `Dev accuracy: evaluation - loss 0.5`."""
    before = [word.phase for word in words if word.start < at]
    if before[-2:] in (["val", "eval"], ["test", "eval"]):
        return before[-2]
    return before[-1] if before else ""


def _phase(word: str) -> str:
    lower = word.lower()
    return "train" if lower.startswith("train") else _MEANS[lower[0]]
