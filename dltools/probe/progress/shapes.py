"""The shape of a line: the line without its digits. Lines of one shape are understood once.

A log prints the same few lines again and again with other numbers. What the names in such a line
mean, and where its counters stand, does not depend on the digits.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

_DIGITS = re.compile(r"\d+")
_NO_NAMES = re.compile(r"(?<![\w@/])(?<!@\d\.)\d+")
_THOUSANDS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})++(?![\d,])|:\d\d,\d{1,9}(?![\d,])")
_DECIMAL = re.compile(r"\d,\d")
_LONGEST = 600
"""Characters of a line whose shape is remembered."""

_LONGEST_NUMBER = 15
"""Digits in a row beyond which a number may be none for a column: such a line is read alone."""

Span = tuple[int, int]
"""Where a number begins and ends in a line."""


class Site(NamedTuple):
    """A number among the runs of digits of a line: the index of its first run, and the text before,
    between and after its runs (`-`, `.`, `e-`)."""

    first: int
    between: tuple[str, ...]

    def text(self, runs: list[str]) -> str:
        """Return the number as printed."""
        first, between = self
        if len(between) == 3:
            return f"{between[0]}{runs[first]}{between[1]}{runs[first + 1]}{between[2]}"
        parts = [between[0]]
        for index, after in enumerate(between[1:], first):
            parts += (runs[index], after)
        return "".join(parts)


def shape(line: str) -> str | None:
    """Return the shape of a line, None for one that is to be read alone: a comma between digits may
    be one of thousands or a decimal one."""
    if len(line) > _LONGEST:
        return None
    found = _DIGITS.sub("0", line)
    if "0,0" not in found:
        return found
    return None if _DECIMAL.search(_THOUSANDS.sub("", line)) else f"{found}\n,"


def numbered_shape(line: str) -> str:
    """Return the shape of a line whose names have digits, such as `q1_loss`, with these."""
    return _NO_NAMES.sub("0", line)


def runs_in_names(line: str) -> list[Span]:
    """Return where the runs of digits of a line stand that are in names."""
    free = {match.start() for match in _NO_NAMES.finditer(line)}
    return [m.span() for m in _DIGITS.finditer(line) if m.start() not in free]


def runs_of(line: str) -> list[str]:
    """Return the runs of digits in a line."""
    return _DIGITS.findall(line)


def are_short(runs: list[str]) -> bool:
    """Tell whether all numbers of a line are such as columns hold."""
    return not runs or len(max(runs, key=len)) <= _LONGEST_NUMBER


def sites(line: str, spans: list[Span | None]) -> list[Site | None]:
    """Return the numbers at places in a line as sites."""
    runs = [match.span() for match in _DIGITS.finditer(line)]
    starts = [start for start, _ in runs]
    found: list[Site | None] = []
    for span in spans:
        if span is None:
            found.append(None)
            continue
        start, end = span
        first = index = bisect_left(starts, start)
        between, at = [], start
        while index < len(runs) and runs[index][1] <= end:
            between.append(line[at : runs[index][0]])
            at = runs[index][1]
            index += 1
        found.append(Site(first, (*between, line[at:end])))
    return found


def spans(line: str, of: Sequence[Site | None]) -> list[Span | None] | None:
    """Return where the numbers at sites stand in a line, None if one of them is nan or inf."""
    runs = [match.span() for match in _DIGITS.finditer(line)]
    found: list[Span | None] = []
    for site in of:
        if site is None:
            found.append(None)
            continue
        first, between = site
        last = first + len(between) - 2
        if last < first:
            return None
        found.append((runs[first][0] - len(between[0]), runs[last][1] + len(between[-1])))
    return found
