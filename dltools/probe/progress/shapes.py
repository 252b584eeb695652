"""What lines have in common that differ in their digits alone, found out once.

A log prints the same few lines again and again with other numbers. Which families may read such a
line, what stands before it, what the names in it mean, and where its numbers stand does not depend
on the digits. `pipeline` asks for a line's `Layout`; `match` reads in it which families to ask, and
`named` keeps in it what it has understood.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dltools.probe.progress.base import Family, Point
from dltools.probe.progress.length import LengthPlace, TimePlace, length_in, time_in
from dltools.probe.progress.prefix import Prefix, prefix_of
from dltools.probe.progress.rank import rank_inside
from dltools.probe.progress.tokens import Stands, may_be_named, stands_of

MOST = 4_096
"""Layouts that are remembered, and meanings beside them."""

_LONGEST = 600
"""Characters of a line whose layout is remembered."""

_LONGEST_NUMBER = 15
"""Digits in a row beyond which a number may be none for a column: such a line is read alone."""

_WHOLE = ("mlperf", "jsonlines")
"""Families whose lines may hold JSON: a cut object cannot be read."""

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_RUNS_OF_ZEROS = re.compile(b"0+")
_DIGITS = re.compile(r"\d+")
_NO_NAMES = re.compile(r"(?<![\w@/])(?<!@\d\.)\d+")
_THOUSANDS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})++(?![\d,])|:\d\d,\d{1,9}(?![\d,])")
_DECIMAL = re.compile(r"\d,\d")

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


class Meaning(NamedTuple):
    """What the generic reader understands of a line: its metrics, normal and as printed, with their
    numbers, and its counters. A heading has counters only, and perhaps the `phase` of what follows.

    `has_fraction` says that a number of a metric has a fraction, `wholes` which have none;
    `is_plain` that the line begins with a metric and a delimiter as programs print it, not as code
    assigns it. A metric `is_doubtful` until it comes again, and said again if it `is_final`;
    a line that `is_indented` may be a setting, one that `is_bar` shows a bar, one that
    `is_dict` has a dict of Python.
    """

    metrics: tuple[tuple[str, str], ...]
    has_totals: bool
    numbers: tuple[Site | None, ...]
    scale: int
    has_fraction: bool
    is_plain: bool
    wholes: frozenset[str] = frozenset()
    is_doubtful: bool = False
    is_final: bool = False
    is_indented: bool = False
    phase: str = ""
    is_bar: bool = False
    is_dict: bool = False

    def texts(self, runs: list[str]) -> list[str | None]:
        """Return the step, the epoch, the metrics and their totals as printed, from the digits of a
        line."""
        return [None if site is None else site.text(runs) for site in self.numbers]


class Located(NamedTuple):
    """A meaning, and where its numbers stand in the lines of a layout."""

    meaning: Meaning
    spans: tuple[Span | None, ...]


class Question(NamedTuple):
    """What is asked for a line: a family's method, and whether it needs the whole line."""

    points_of: Callable[[str], list[Point]]
    needs_all: bool
    name: str
    partial: bool
    may_read: Callable[[str], bool]


class Shape:
    """Lines that differ in their numbers alone, be these longer or shorter.

    `meanings` are those of the lines by the digits in their names, if some metric `has_numbers` in
    its name, as `q1_loss` has; else there is one, under "". `stands` says of a line whether its
    name or its number has a line of its own.
    """

    __slots__ = ("has_numbers", "may_be_named", "meanings", "questions", "stands")

    def __init__(
        self, questions: tuple[Question, ...], *, may_be_named: bool, stands: Stands = Stands.ALONE
    ) -> None:
        """Ask these questions; `may_be_named` says that the generic reader may find something."""
        self.questions = questions
        self.may_be_named, self.stands = may_be_named, stands
        self.meanings: dict[str, Meaning] = {}
        self.has_numbers = False


class Layout:
    """Lines of one shape whose numbers stand at the same places.

    `prefix` is what stands before the program's own line, None for nothing. A layout that is not
    `is_kept` is that of one long line. `located` is what the generic reader has understood; where
    digits in names matter, `names` says where these are, and `by_names` has it for each. `length`
    is where the lines say how long the job trains, `time` where they say how long it has run.
    """

    __slots__ = (
        "by_names",
        "is_kept",
        "length",
        "located",
        "may_have_rank",
        "names",
        "prefix",
        "shape",
        "time",
    )

    def __init__(
        self,
        shape: Shape,
        prefix: Prefix | None,
        *,
        may_have_rank: bool,
        length: LengthPlace | None,
        time: TimePlace | None,
        is_kept: bool,
    ) -> None:
        """Nothing is understood yet."""
        self.shape, self.prefix, self.length, self.time = shape, prefix, length, time
        self.may_have_rank, self.is_kept = may_have_rank, is_kept
        self.located: Located | None = None
        self.names: list[Span] | None = None
        self.by_names: dict[tuple[str, ...], Located] = {}

    def located_for(self, line: str) -> Located | None:
        """Return what is understood of a line, None if nothing is known yet."""
        if self.located is None and self.names is not None:
            return self.by_names.get(tuple([line[start:end] for start, end in self.names]))
        return self.located


class Shapes(dict[bytes, Layout]):
    """The layouts of one log, by the line with zeros for its digits, for some families of
    formats."""

    def __init__(self, families: Sequence[Family] = ()) -> None:
        super().__init__()
        self._shapes: dict[bytes, Shape] = {}
        self._meanings = 0
        self._questions = tuple(
            Question(one.points, one.name in _WHOLE, one.name, one.partial, one.may_read)
            for one in families
        )

    def of(self, line: str) -> Layout:
        """Return the layout of a line."""
        if len(line) > _LONGEST:
            shape = Shape(self._questions, may_be_named=True)
            return Layout(
                shape,
                prefix_of(line),
                may_have_rank=True,
                length=length_in(line),
                time=time_in(line),
                is_kept=False,
            )
        return self[line.encode("utf-8", "surrogatepass").translate(_ZEROS)]

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
            shape = Shape(self._asked(lower), may_be_named=is_named, stands=stands)
            self._shapes[without_lengths] = shape
        line = key.decode("utf-8", "surrogatepass")
        found = self[key] = Layout(
            shape,
            prefix_of(line),
            may_have_rank=bool(rank_inside(line)),
            length=length_in(line),
            time=time_in(line),
            is_kept=True,
        )
        return found

    def make_room(self) -> None:
        """Take note that a meaning is kept: names with digits in them may be without end."""
        self._meanings += 1
        if self._meanings > MOST:
            self._forget()

    def _forget(self) -> None:
        self.clear()
        self._shapes.clear()
        self._meanings = 0

    def _asked(self, lower: str) -> tuple[Question, ...]:
        """Return what is asked for lines of a shape, given in small letters."""
        return tuple(one for one in self._questions if one.may_read(lower))


def has_doubtful_comma(line: str) -> bool:
    """Tell whether a comma between digits may be one of thousands or a decimal one: such a line is
    read alone."""
    return bool(_DECIMAL.search(line) and _DECIMAL.search(_THOUSANDS.sub("", line)))


def with_names(line: str) -> str:
    """Return a line with one zero for each number, but for digits in names, such as `q1_loss`."""
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
