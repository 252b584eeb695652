"""What lines have in common that differ in their digits alone, found out once.

A log prints the same few lines again and again with other numbers. Which families may read such a
line, what stands before it, what the names in it mean, and where its numbers stand does not depend
on the digits. `pipeline` asks for a line's `Layout`; `match` reads in it which families to ask, and
`named` asks it what a line means. Places in lines are said by the runs of digits before them, so
that they hold for numbers of any length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dltools.probe.progress.base import Family, Point
from dltools.probe.progress.length import length_in, time_in
from dltools.probe.progress.prefix import prefix_of
from dltools.probe.progress.rank import rank_inside
from dltools.probe.progress.tokens import Stands, may_be_named, stands_of

MOST = 4_096
"""Layouts that are remembered, and meanings beside them."""

_LONGEST = 600
"""Characters of a line whose layout is remembered."""

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_RUNS_OF_ZEROS = re.compile(b"0+")
_DIGITS = re.compile(r"\d+")
_IN_NAMES = re.compile(r"(?:(?<=[\w@/])|(?<=@\d\.))(?<!\d)\d+")
_THOUSANDS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})++(?![\d,])|:\d\d,\d{1,9}(?![\d,])")
_UNUSUAL = re.compile(r"\d,\d|\d{16}")
"""A comma between digits that may be one of thousands or a decimal one, and a number that may be
none for a column."""

Span = tuple[int, int]
"""Where a number begins and ends in a line."""

Mark = tuple[int, int]
"""A place in all lines of a shape: how many runs of digits end before it, and how many characters
behind the last of them it is."""


class Meaning(NamedTuple):
    """What the generic reader understands of a line: its metrics, normal and as printed, with their
    numbers, and its counters. A heading has counters only, and perhaps the `phase` of what follows;
    the batches of an evaluation have theirs.

    `has_fraction` says that a number of a metric has a fraction, `wholes` which have none;
    `is_plain` that the line begins with a metric and a delimiter as programs print it, not as code
    assigns it. A metric `is_doubtful` until it comes again, and said again if it `is_final`;
    a line that `is_indented` may be a setting, one that `is_bar` shows a bar, which
    `is_end` is full, one that `is_dict` has a dict of Python, and one that `is_notice` says what
    Lightning does with a checkpoint.
    """

    metrics: tuple[tuple[str, str], ...]
    has_totals: bool
    numbers: tuple[tuple[Mark, Mark] | None, ...]
    scale: int
    has_fraction: bool
    is_plain: bool
    wholes: frozenset[str] = frozenset()
    is_doubtful: bool = False
    is_final: bool = False
    is_indented: bool = False
    phase: str = ""
    is_bar: bool = False
    is_end: bool = False
    is_dict: bool = False
    is_notice: bool = False


NO_MEANING = Meaning((), False, (), 1, has_fraction=False, is_plain=False)


class Reading(NamedTuple):
    """The points of one line, and who found them.

    `is_sure`: the line needs no confirmation, because a family has read it, or because it has a
    counter and a metric with a fraction. `meaning` is what the generic reader understood. Its
    reading `is_rivalled` where a family has read more lines of this log. A dict without a step
    `awaits_bar`, which is drawn again behind it: `shown` is then the step of both.
    """

    points: list[Point]
    meaning: Meaning = NO_MEANING
    is_sure: bool = True
    is_rivalled: bool = False
    awaits_bar: bool = False
    shown: int | None = None


NOTHING = Reading([])


class Located(NamedTuple):
    """A meaning, and where its numbers stand in the lines of a layout."""

    meaning: Meaning
    spans: tuple[Span | None, ...]


class Shape:
    """Lines that differ in their numbers alone, be these longer or shorter.

    `meanings` are those of the lines by the digits in their names, if some metric `has_numbers` in
    its name, as `q1_loss` has; else there is one, under (). `stands` says of a line whether its
    name or its number has a line of its own.
    """

    def __init__(
        self, families: tuple[Family, ...], *, may_be_named: bool, stands: Stands = Stands.ALONE
    ) -> None:
        """Ask these families; `may_be_named` says that the generic reader may find something."""
        self.families = families
        self.may_be_named, self.stands = may_be_named, stands
        self.meanings: dict[tuple[str, ...], Meaning] = {}
        self.has_numbers = False


class Layout:
    """Lines of one shape whose numbers stand at the same places.

    `prefix` is what stands before the program's own line, None for nothing. `length` is where the
    lines say how long the job trains, `time` where they say how long it has run.
    """

    def __init__(self, line: str, shape: Shape, make_room: Callable[[], None] | None) -> None:
        """Nothing is understood yet. `make_room` is called for each meaning that is kept, None for
        a line that is read alone."""
        self.shape, self.prefix = shape, prefix_of(line)
        self.length, self.time = length_in(line), time_in(line)
        self.may_have_rank = bool(rank_inside(line))
        self._room = make_room
        self._located: dict[tuple[str, ...], Located] = {}
        self._names = _runs_in_names(line) if shape.has_numbers else []

    def understood(self, line: str, understand: Callable[[str], Meaning]) -> Located:
        """Return what a line means: what lines like it are known to mean, or else what `understand`
        says."""
        key = tuple([line[start:end] for start, end in self._names]) if self._names else ()
        return self._located.get(key) or self._locate(line, key, understand)

    def _locate(
        self, line: str, key: tuple[str, ...], understand: Callable[[str], Meaning]
    ) -> Located:
        shape = self.shape
        is_usual = self._room is not None and not _UNUSUAL.search(_THOUSANDS.sub("", line))
        meaning = shape.meanings.get(key) if is_usual else None
        if meaning is None:
            meaning = understand(line)
            if any(map(str.isdigit, "".join(metric for metric, _ in meaning.metrics))):
                shape.has_numbers, self._names = True, _runs_in_names(line)
                key = tuple([line[start:end] for start, end in self._names])
            if is_usual:
                shape.meanings[key] = meaning
                shape.may_be_named = shape.has_numbers or bool(meaning.numbers)
        if self._room is not None:
            self._room()
        located = self._located[key] = Located(meaning, _spans(line, meaning.numbers))
        return located


class Shapes(dict[bytes, Layout]):
    """The layouts of one log, by the line with zeros for its digits, for some families of
    formats."""

    def __init__(self, families: Sequence[Family] = ()) -> None:
        super().__init__()
        self._shapes: dict[bytes, Shape] = {}
        self._meanings = 0
        self._families = tuple(families)

    def of(self, line: str) -> Layout:
        """Return the layout of a line."""
        return self.of_lines([line])[0]

    def of_lines(self, lines: Sequence[str]) -> list[Layout]:
        """Return the layouts of lines."""
        if not lines:
            return []
        keys = "\n".join(lines).encode("utf-8", "surrogatepass").translate(_ZEROS).split(b"\n")
        if max(map(len, keys)) <= _LONGEST:
            return list(map(self.__getitem__, keys))
        return [
            self[key] if len(key) <= _LONGEST else self._alone(line)
            for line, key in zip(lines, keys, strict=True)
        ]

    def _alone(self, line: str) -> Layout:
        """Return the layout of a long line, which is not remembered."""
        return Layout(line, Shape(self._families, may_be_named=True), None)

    def __missing__(self, key: bytes) -> Layout:
        """Return a layout that is new, and remember it."""
        if len(self) >= MOST:
            self._forget()
        without_lengths = _RUNS_OF_ZEROS.sub(b"0", key)
        shape = self._shapes.get(without_lengths)
        if shape is None:
            lower = without_lengths.decode("utf-8", "surrogatepass").lower()
            stands = stands_of(lower)
            is_named = stands is Stands.BELOW or may_be_named(lower)
            families = tuple(family for family in self._families if family.may_read(lower))
            shape = Shape(families, may_be_named=is_named, stands=stands)
            self._shapes[without_lengths] = shape
        layout = self[key] = Layout(key.decode("utf-8", "surrogatepass"), shape, self._make_room)
        return layout

    def _make_room(self) -> None:
        """Take note that a meaning is kept: names with digits in them may be without end."""
        self._meanings += 1
        if self._meanings > MOST:
            self._forget()

    def _forget(self) -> None:
        self.clear()
        self._shapes.clear()
        self._meanings = 0


def _runs_in_names(line: str) -> list[Span]:
    """Return where the runs of digits of a line stand that are in names."""
    return [match.span() for match in _IN_NAMES.finditer(line)]


def marks(line: str, spans: Sequence[Span | None]) -> tuple[tuple[Mark, Mark] | None, ...]:
    """Return parts of a line as parts of all lines of its shape."""
    ends = _ends(line)

    def mark(at: int) -> Mark:
        number = bisect_right(ends, at) - 1
        return number, at - ends[number]

    return tuple(None if span is None else (mark(span[0]), mark(span[1])) for span in spans)


def _spans(line: str, parts: Sequence[tuple[Mark, Mark] | None]) -> tuple[Span | None, ...]:
    """Return where parts of the lines of a shape stand in one of them."""
    ends = _ends(line)
    return tuple(
        None if part is None else (ends[part[0][0]] + part[0][1], ends[part[1][0]] + part[1][1])
        for part in parts
    )


def _ends(line: str) -> list[int]:
    """Return where the runs of digits of a line end, behind its begin."""
    return [0, *(match.end() for match in _DIGITS.finditer(line))]
