"""Many drawings of one bar, which differ in their numbers alone: they are read together.

A bar is drawn thousands of times. Where some of its drawings have been read one by one, one
expression reads the others: `Drawings` of one form, which is learned from a drawing and from the
points in it. What it cannot read so is read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from dltools.probe.progress.base import Point
from dltools.probe.progress.peel import prefix_of
from dltools.probe.progress.ranks import rank_inside
from dltools.probe.progress.stamps import may_have_stamp

_OFTEN = 16
"""Drawings of a form that are read one by one before it is learned."""

_MOST_FORMS = 64
_LEAST, _MOST = 1 << 13, 1 << 18
"""Characters of a line that are read together, at first and at most."""

_PATIENCE = 1_024
"""Drawings that are read one by one, at most, before it is tried again to read some together."""

_HEAD = itemgetter(0)
_PERCENTAGE = re.compile(r"(?<!\d)\d{1,4}\Z")
_NUMBERS = re.compile(r"[-+.\deE]+")


class About(NamedTuple):
    """What stands before a bar says: the epoch, and the metrics with their names as printed, each
    with the index of its number in the bar."""

    epoch: float | None
    metrics: tuple[tuple[str, str, int], ...]


class Form(NamedTuple):
    """How drawings of a bar look: `findall` gives for each drawing what stands before the bar, the
    step, the time spent, the numbers, and the drawing itself if it has another form.

    `about` says what stands before a bar, None where that makes the drawing one to read alone.
    """

    findall: Callable[[str, int, int], list[tuple[str, ...]]]
    about: Callable[[str], About | None]


class Drawings(NamedTuple):
    """The points of drawings, in order: at each of `steps` one value of each of `metrics`, None for
    no point, after `elapsed` seconds of the job's own time; `missing` values are None. The metrics
    have their names as printed beside them."""

    metrics: tuple[tuple[str, str], ...]
    values: Sequence[Sequence[float | None]]
    steps: list[int]
    elapsed: list[float]
    epoch: float | None
    source: str
    missing: int = 0

    def points(self) -> list[list[Point]]:
        """Return the points of each drawing."""
        return [
            [
                Point(metric, value, step, self.epoch, self.source, original, elapsed)
                for (metric, original), value in zip(self.metrics, values, strict=True)
                if value is not None
            ]
            for step, elapsed, *values in zip(self.steps, self.elapsed, *self.values, strict=True)
        ]

    def with_values(self, values: Sequence[Sequence[float | None]]) -> Drawings:
        """Return the drawings with other values, without those that have none."""
        if all(new is old for new, old in zip(values, self.values, strict=True)):
            return self
        none = (None,) * len(values)
        kept = [at for at, row in enumerate(zip(*values, strict=True)) if row != none]
        columns = [[column[at] for at in kept] for column in values]
        return self._replace(
            values=columns,
            steps=[self.steps[at] for at in kept],
            elapsed=[self.elapsed[at] for at in kept],
            missing=sum(column.count(None) for column in columns),
        )


@runtime_checkable
class BarFamily(Protocol):
    """A family of formats whose bars can be read together."""

    name: ClassVar[str]
    epoch: float | None
    """The epoch of the newest bar."""

    def form(self, drawing: str) -> Form | None:
        """Return the form of a drawing that gave points, None if it has none that is known."""

    def drawn(self, about: About, spent: Sequence[tuple[str, int]]) -> list[float]:
        """Take note of drawings, given as the times that they say in a row, each with how many say
        it; return for each drawing how long the job had been running."""


class Bars:
    """Reads the drawings of one log's bars together where they can be."""

    def __init__(self, family_of: Callable[[str], BarFamily | None]) -> None:
        """`family_of` tells the family that reads a drawing first of all, None if it is none whose
        bars can be read together."""
        self._family_of = family_of
        self._forms: dict[str, Form | None] = {}
        self._uses: dict[str, int] = {}
        self._form: Form | None = None
        self._family: BarFamily | None = None
        self._abouts: dict[str, About | None] = {}  # by what stands before a bar
        self._said_before: dict[str, About | None] = {}  # by that without the percentage
        self._reach, self._rest, self._pause = _LEAST, 0, 1

    def learn(self, drawing: str, points: Sequence[Point]) -> None:
        """Take note of a drawing that was read alone, and of its points, repeated ones too."""
        self._rest -= 1
        at = drawing.find("%|")
        if at < 0 or not points:
            return
        key = _NUMBERS.sub("", drawing[drawing.find("<", at) :])
        if key not in self._forms:
            uses = self._uses[key] = self._uses.get(key, 0) + 1
            if uses < _OFTEN:
                return
            if len(self._uses) > _MOST_FORMS:
                self._uses.clear()
                self._forms.clear()
            family = self._family_of(drawing)
            is_its_own = family is not None and points[0].source == family.name
            self._forms[key] = family.form(drawing) if family and is_its_own else None
        form = self._forms[key]
        if form is not self._form:
            self._form, self._abouts, self._said_before = form, {}, {}
            self._family = self._family_of(drawing)

    def read(self, text: str, at: int) -> tuple[Drawings, int, int] | None:
        """Return the drawings of a line from a place on, how many they are, and where they end;
        None if the next one is to be read alone."""
        form, family = self._form, self._family
        if form is None or family is None or self._rest > 0:
            return None
        end = self._end(text, at)
        rows = form.findall(text, at, end)
        count, about = self._same(rows, text, at, end)
        if about is None:
            self._rest = self._pause = min(2 * self._pause, _PATIENCE)
            self._reach = _LEAST
            return None
        if count < len(rows):
            end -= len(text[at:end].split("\r", count)[-1])
            self._reach = _LEAST
            rows = rows[:count]
        else:
            self._reach = min(4 * self._reach, _MOST)
        self._pause = 1
        columns = list(zip(*rows, strict=True))
        spent = [(said, len(list(same))) for said, same in groupby(columns[2])]
        elapsed = family.drawn(about, spent)
        found = Drawings(
            tuple((metric, original) for metric, original, _ in about.metrics),
            [list(map(float, columns[3 + number])) for _, _, number in about.metrics],
            list(map(int, columns[1])),
            elapsed,
            family.epoch,
            family.name,
        )
        return found, count, end

    def _end(self, text: str, at: int) -> int:
        """Return where the drawings end that are looked at."""
        if len(text) - at <= self._reach:
            return len(text)
        return text.rfind("\r", at, at + self._reach) + 1 or at

    def _same(
        self, rows: list[tuple[str, ...]], text: str, at: int, end: int
    ) -> tuple[int, About | None]:
        """Return how many drawings are of one form and about the same, and what they are about."""
        count, first = 0, None
        for head, same in groupby(rows, key=_HEAD):
            about = self._about(head, text, at, end) if head else None
            if about is None or (first is not None and about != first):
                break
            first = about
            count += len(list(same))
        return count, first

    def _about(self, head: str, text: str, at: int, end: int) -> About | None:
        """Return what the text before a bar says, the percentage at its end apart."""
        if head not in self._abouts:
            if len(self._abouts) > 4_096:
                self._abouts.clear()
            before = _PERCENTAGE.sub("", head)
            self._abouts[head] = self._said(before, head, text, at, end) if before != head else None
        return self._abouts[head]

    def _said(self, before: str, head: str, text: str, at: int, end: int) -> About | None:
        key = before.rstrip()
        if key not in self._said_before:
            if len(self._said_before) > 4_096:
                self._said_before.clear()
            whole = f"{head}%|"
            begin = at if text.startswith(whole, at) else text.find(f"\r{whole}", at, end) + 1
            stop = text.find("\r", begin, end)
            drawing = text[begin : stop if stop >= 0 else end]
            is_ours = _is_bare(drawing) and self._family_of(drawing) is self._family
            self._said_before[key] = self._form.about(key) if is_ours and self._form else None
        return self._said_before[key]


def _is_bare(drawing: str) -> bool:
    """Tell whether a drawing has neither a prefix, a time stamp nor a rank before the bar."""
    return not (prefix_of(drawing) or may_have_stamp(drawing) or rank_inside(drawing))
