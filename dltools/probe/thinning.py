"""Leaves most lines of a log out that prints more than anybody needs, before they are read.

To read a line costs fifteen times what it costs to tell its kind (measured), and each point becomes
a row in every recording. So of a flood a few lines of each kind are read, spread evenly, the first
and the last among them, and all lines of kinds that are rare, such as what an evaluation says.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

_USUAL_A_SECOND, _SAVED = 200, 20_000
"""Lines a second of a log that are all read (ours), as trainings print less, and lines that may
come at once, or that a log has at first."""

_FEW_A_SECOND, _FEWEST, _FEW = 10, 20, 1_000
"""Lines of a kind that are read of a flood: a second, and the bounds at once."""

_KINDS = 8
"""How many kinds of lines may say what another line belongs to, such as its epoch."""

_LOOKED_AT = 400
_VARYING = b"0123456789+-.=>#|/\\_ \t\r\x1b[]aef%:,"
"""Bytes that lines of one kind differ in: those of numbers, bars and spaces."""


class Chosen(NamedTuple):
    """An entry to read. `counts`: whether its points do; else it only shows what others are of."""

    entry: bytes
    counts: bool


class Thinner:
    """Chooses the lines of one log to read."""

    def __init__(self) -> None:
        """No line has been read."""
        self._left = float(_SAVED)

    def chosen(self, entries: Sequence[bytes], seconds: float) -> Iterator[Chosen]:
        """Yield the entries to read of those of some seconds, in order: all, unless it is a
        flood."""
        self._left = min(_SAVED, self._left + seconds * _USUAL_A_SECOND) - len(entries)
        if self._left >= 0:
            return (Chosen(entry, counts=True) for entry in entries)
        self._left = 0.0
        return thinned(entries, int(min(_FEW, max(_FEWEST, seconds * _FEW_A_SECOND))))


def thinned(entries: Sequence[bytes], few: int) -> Iterator[Chosen]:
    """Yield a few entries of each frequent kind, all of rare ones, and all of lines in parts,
    unless these are many too.

    Before each comes the newest of each other frequent kind, so that it is read as the whole log
    would have it read.
    """
    kinds: dict[bytes, list[int]] = {}
    unended: list[int] = []
    is_open = False  # whether the entry before goes on
    for number, entry in enumerate(entries):
        has_end = entry.endswith(b"\n")
        if is_open or not has_end:
            unended.append(number)
        else:
            kinds.setdefault(entry[:_LOOKED_AT].translate(None, _VARYING), []).append(number)
        is_open = not has_end
    frequent = sorted((own for own in kinds.values() if len(own) > few), key=len)[-_KINDS:]
    ids = set(map(id, frequent))
    rare = sorted(chain.from_iterable(own for own in kinds.values() if id(own) not in ids))
    most = few * _KINDS
    kept = {*_spread(rare, most), *(unended if len(unended) <= most else ())}
    each = max(2, few // max(1, len(frequent)))
    kept.update(*(_spread(own, each) for own in frequent))
    yield from _with_context(entries, sorted(kept), frequent)


def _with_context(
    entries: Sequence[bytes], kept: Sequence[int], frequent: Sequence[list[int]]
) -> Iterator[Chosen]:
    """Yield the entries of some numbers, each with those before it that show what it is of."""
    places, before = [0] * len(frequent), -1
    for number in kept:
        context = []
        for kind, own in enumerate(frequent):
            at = places[kind] = bisect_left(own, number, places[kind])
            if at and own[at - 1] > before:
                context.append(own[at - 1])
        yield from (Chosen(entries[earlier], counts=False) for earlier in sorted(context))
        yield Chosen(entries[number], counts=True)
        before = number


def _spread(numbers: Sequence[int], most: int) -> Iterator[int]:
    """Yield at most so many of some numbers, spread evenly, the first and the last among them."""
    if len(numbers) <= most:
        yield from numbers
        return
    for place in range(most):
        yield numbers[place * (len(numbers) - 1) // (most - 1)]


_SHARE = 0.05
"""The part of a CPU that reading new lines of all logs may take in the long run (ours)."""

_SAVED_S = 0.25
"""CPU seconds that it may take at once."""

_CHEAP_S = 0.001
"""CPU seconds that reading a log may always take, and that are not counted."""


class Duty:
    """Holds the CPU time of reading all logs to a part of the time. While it is used up, logs whose
    last reading was not cheap rest, all of them alike."""

    def __init__(self) -> None:
        """Nothing has been used yet."""
        self._left = _SAVED_S
        self._at = time.monotonic()
        self._sample = -1.0
        self._is_open = True

    def may_read(self, sample: float, cost_s: float) -> bool:
        """Tell whether to read a log whose last reading took so many CPU seconds. `sample`: what is
        the same for all logs of a sample, such as its time."""
        if sample != self._sample:
            now = time.monotonic()
            self._left = min(_SAVED_S, self._left + _SHARE * (now - self._at))
            self._sample, self._at, self._is_open = sample, now, self._left > 0
        return self._is_open or cost_s <= _CHEAP_S

    def note(self, cost_s: float) -> None:
        """Note the CPU seconds of a reading."""
        if cost_s > _CHEAP_S:
            self._left -= cost_s


DUTY = Duty()
"""That of this process: all its hosts share it."""
