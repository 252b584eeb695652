"""Finds the families of formats that a log belongs to, by trying all on its first lines.

It is the third step of the pipeline, and registers the families (`FAMILIES`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module

from dltools.probe.progress.base import NOTHING, Family, Point, Reading
from dltools.probe.progress.named import Named
from dltools.probe.progress.shapes import Layout, Question, Shapes

FAMILIES: tuple[str, ...] = (
    "mlperf",
    "serving",
    "keras",
    "huggingface",
    "nanogpt",
    "fairseq",
    "detectron",
    "yolo",
    "darknet",
    "espnet",
    "kaldi",
    "baselines",
    "cntk",
    "tables",
    "tqdm",
    "jsonlines",
    "latency",
)
"""Modules of `families`, each with a class `Log`. If several claim a line, the first one counts."""

MANY = 20
"""After this many lines with points the families seen so far are kept, and no other is tried."""

_ALWAYS = ("mlperf", "serving")
"""Families that are always kept, because their lines may begin late."""

LONGEST_TEXT = 4_096
"""Most characters of a line that other families read: the cost of an expression can grow with the
square of the length."""

_LOST = 200
"""After this many lines without a point all families are tried again."""

_NONE: frozenset[str] = frozenset()
_CERTAIN = partial(tuple.__new__, Reading)
"""Makes a reading of its fields in C."""


class Automatic:
    """Finds the families of one log, and its points.

    Every family reads every line until `MANY` lines had points; then only families that found some
    are kept. A `partial` family claims lines, never the whole log. The generic reader (`Named`)
    reads the lines that no family claims. For lines that differ only in their digits, the same
    families are asked: those whose `needs` the line has.
    """

    def __init__(self) -> None:
        self._families = [_make(name) for name in FAMILIES]
        self.shapes = Shapes(self._families)
        self._named = Named(self.shapes)
        self._kept: list[Family] = []
        self._votes: dict[str, int] = {}
        self._claimed = 0  # lines claimed by families that are not partial
        self._idle = 0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        return self.read(line, self.shapes.of(line)).points

    def read(self, line: str, layout: Layout) -> Reading:
        """Return the points of a line of a layout, and how sure they are."""
        shape = layout.shape
        ask = self._of_kept if self._kept else self._of_all
        if shape.questions and (found := ask(line, shape.questions)):
            if found[0].source == "latency" and shape.may_be_named:
                read = self._named.read(line[:LONGEST_TEXT], layout)
                found = [*read.points, *found] if read.is_sure else found
            if (epoch := found[0][3]) is not None:
                self._named.epoch = epoch
            elif (epoch := self._named.above[1]) is not None:
                found = [point._replace(epoch=epoch) for point in found]
            return _CERTAIN((found, True, False, False, _NONE, False, False))
        if shape.may_be_named:
            read = self._named.read(line[:LONGEST_TEXT], layout)
            if read.points:
                is_rivalled = self._claimed > self._votes.get("", 0)
                idle = self._idle
                self._vote("")
                if self._claimed >= MANY:
                    self._wait(idle)
                return read._replace(is_rivalled=True) if is_rivalled else read
        self._wait(self._idle)
        return NOTHING

    def _wait(self, idle: int) -> None:
        """Count one more line that no family claims; after many, try all again."""
        self._idle = idle + 1
        if self._idle > _LOST and self._kept:
            self._start_again()

    def _of_kept(self, line: str, questions: Sequence[Question]) -> list[Point]:
        """Return the points of the first kept family that finds some."""
        for points_of, needs_all, _, is_partial, _ in questions:
            if found := points_of(line if needs_all else line[:LONGEST_TEXT]):
                self._idle = 0
                self._claimed += not is_partial
                return found
        return []

    def _of_all(self, line: str, questions: Sequence[Question]) -> list[Point]:
        """Return the points of the first family that finds some. All families read the line."""
        found: list[Point] = []
        for points_of, needs_all, name, is_partial, _ in questions:
            points = points_of(line if needs_all else line[:LONGEST_TEXT])
            if points and not found:
                found = points
                if not is_partial:
                    self._claimed += 1
                self._vote(name)
                if self._kept:
                    break
        return found

    def _vote(self, name: str) -> None:
        """Count a line with points; after many, keep the families that found some."""
        self._idle = 0
        self._votes[name] = self._votes.get(name, 0) + 1
        if not self._kept and sum(self._votes.values()) >= MANY:
            self._kept = [f for f in self._families if f.name in (*self._votes, *_ALWAYS)]
            self.shapes.ask(self._kept)

    def _start_again(self) -> None:
        self._kept, self._votes, self._idle = [], {}, 0
        self.shapes.ask(self._families)
        self._claimed = min(self._claimed, 2)


def _make(name: str) -> Family:
    made: Family = import_module(f"dltools.probe.progress.families.{name}").Log()
    return made
