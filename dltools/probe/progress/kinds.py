"""Kinds of lines: lines that differ in their digits alone. What may be in them is asked once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dltools.probe.progress.base import Family, Point
from dltools.probe.progress.name_words import may_be_named
from dltools.probe.progress.peel import Prefix, prefix_of
from dltools.probe.progress.ranks import rank_inside

_WHOLE = ("mlperf", "mm", "nvidia", "jsonlines")
"""Families whose lines may hold JSON: a cut object cannot be read."""

_LONGEST, _MOST = 600, 4_096
"""Characters of a line whose kind is remembered, and how many kinds are."""

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_RUNS = re.compile(b"0+")


class Question(NamedTuple):
    """What is asked for a line: a family's method, and whether it needs the whole line."""

    points_of: Callable[[str], list[Point]]
    needs_all: bool
    name: str
    partial: bool
    needs: tuple[str, ...]
    family: Family


class Kind(NamedTuple):
    """What is asked for lines of one kind, whether the generic reader may find something, what
    stands before the program's own line, and whether a rank may stand in it.

    `key` is the line with zeros for its digits, None for a line that is too long to be remembered.
    """

    questions: tuple[Question, ...]
    may_be_named: bool
    prefix: Prefix | None
    may_have_rank: bool
    key: bytes | None


class Kinds(dict[bytes, Kind]):
    """The kinds of lines of one log, by their keys, for some families of formats."""

    def __init__(self, families: Sequence[Family] = ()) -> None:
        super().__init__()
        self._of_shapes: dict[bytes, tuple[tuple[Question, ...], bool]] = {}
        self.ask(families)

    def ask(self, families: Sequence[Family]) -> None:
        """Ask these families from now on."""
        self.clear()
        self._of_shapes.clear()
        self._questions = tuple(
            Question(one.points, one.name in _WHOLE, one.name, one.partial, one.needs, one)
            for one in families
        )

    def of(self, line: str) -> Kind:
        """Return the kind of a line."""
        if len(line) > _LONGEST:
            return Kind(self._questions, True, prefix_of(line), True, None)
        return self[line.encode("utf-8", "surrogatepass").translate(_ZEROS)]

    def __missing__(self, key: bytes) -> Kind:
        """Return a kind that is new, and remember it."""
        if len(self) >= _MOST:
            self.clear()
            self._of_shapes.clear()
        shape = _RUNS.sub(b"0", key)
        asked = self._of_shapes.get(shape)
        if asked is None:
            asked = self._of_shapes[shape] = self._asked(shape.decode("utf-8", "surrogatepass"))
        line = key.decode("utf-8", "surrogatepass")
        found = self[key] = Kind(*asked, prefix_of(line), bool(rank_inside(line)), key)
        return found

    def _asked(self, shape: str) -> tuple[tuple[Question, ...], bool]:
        """Return what is asked for lines of a shape, the line with one zero for each number."""
        lower = shape.lower()
        questions = tuple(
            one
            for one in self._questions
            if not one.needs or any(need in lower for need in one.needs)
        )
        return questions, may_be_named(lower)
