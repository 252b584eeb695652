"""The points of one log, given as bytes: peel, claim, hold, drop what comes twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic

from dltools.probe.progress.base import Extractor, Point
from dltools.probe.progress.detect import Automatic, Claim
from dltools.probe.progress.held import Held, M, Marked
from dltools.probe.progress.log_lines import LogLines
from dltools.probe.progress.peel import Peeled, peel
from dltools.probe.progress.repeats import Ranks, Repeats

Note = Callable[[Peeled, list[Point]], M]
"""What a caller notes of a line and of what was found in it, certain or not."""


class PointReader(Generic[M]):
    """Reads one log, given in pieces of any size.

    `note` is called for each line in order; a point comes with what it returned for the point's
    line. Points that are doubtful come later than their line, those of one metric in order.
    """

    def __init__(self, extractor: Extractor, note: Note[M] | None = None) -> None:
        """Nothing is read yet."""
        self._extractor = extractor
        self._note = note
        self._lines = LogLines()
        self._held: Held[M] = Held()
        self._repeats, self._ranks = Repeats(), Ranks()

    def feed(self, data: bytes) -> list[Point]:
        """Return the points that are certain with the lines that are now complete."""
        return [found.point for found in self.marked(data)]

    def end(self) -> list[Point]:
        """Return the points of the last line, if it has no end, and those that waited."""
        return [found.point for found in self.marked(b"", is_last=True)]

    def marked(self, data: bytes, *, is_last: bool = False) -> Iterator[Marked[M]]:
        """Yield the points that are certain now, with what was noted of their lines."""
        for line in self._lines.feed(data) + (self._lines.end() if is_last else []):
            for peeled in peel(line):
                yield from self._read(peeled)
        if is_last:
            yield from self._held.end()

    def settled(self) -> list[Marked[M]]:
        """Return those of the points that wait that are likely enough if the log ends here."""
        return [one for one in self._held.end() if not one.point.value.is_integer()]

    def dropped(self) -> dict[str, int]:
        """Return how many points of each metric were taken for no series so far."""
        return self._held.dropped()

    def _read(self, line: Peeled) -> list[Marked[M]]:
        claim = self._claim(line)
        mark: Any = self._note(line, claim.points) if self._note else None
        return self._held.pass_on(claim, mark) if claim.points else []

    def _claim(self, line: Peeled) -> Claim:
        """Return what a line says, without what a line before it said."""
        extractor = self._extractor
        try:
            if isinstance(extractor, Automatic):
                claim = extractor.claim(line.text)
            else:
                claim = Claim(extractor.points(line.text))
        except (ValueError, OverflowError):  # a "number" of thousands of digits
            return Claim([])
        if not claim.points:
            return claim
        return claim._replace(
            points=[p for p in map(_bounded, claim.points) if self._is_new(p, line)]
        )

    def _is_new(self, point: Point, line: Peeled) -> bool:
        if line.rank and not self._ranks.follows(line, point):
            return False
        return self._repeats.is_new(point, is_redrawn=line.is_redrawn)


def _bounded(point: Point) -> Point:
    """Return a point without a step that no column holds."""
    if point.step is None or -(2**63) <= point.step < 2**63:
        return point
    return point._replace(step=None)
