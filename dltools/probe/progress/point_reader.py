"""The points of one log, given as bytes: peel, claim, hold, drop what comes twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from dltools.probe.progress.base import Extractor, Point
from dltools.probe.progress.detect import NOTHING, Automatic, Claim
from dltools.probe.progress.held import Held, M, Marked
from dltools.probe.progress.log_lines import LogLine, LogLines
from dltools.probe.progress.peel import may_have_prefix, peel
from dltools.probe.progress.repeats import Ranks, Repeats

Note = Callable[[LogLine, list[Point]], M]
"""What a caller notes of a line and of what was found in it, certain or not."""


_MOST = 2**63
"""Steps that no column holds begin here."""


class PointReader(Generic[M]):
    """Reads one log, given in pieces of any size.

    `note` is called for each line in order; a point comes with what it returned for the point's
    line. Points that are doubtful come later than their line, those of one metric in order.
    """

    def __init__(self, extractor: Extractor, note: Note[M] | None = None) -> None:
        """Nothing is read yet."""
        self._claim = _claims_of(extractor)
        self._note = note
        self._lines = LogLines()
        self._held: Held[M] = Held()
        self._repeats, self._ranks = Repeats(), Ranks()

    def feed(self, data: bytes) -> list[Point]:
        """Return the points that are certain with the lines that are now complete."""
        return [point for _, point in self.marked(data)]

    def end(self) -> list[Point]:
        """Return the points of the last line, if it has no end, and those that waited."""
        return [point for _, point in self.marked(b"", is_last=True)]

    def marked(self, data: bytes, *, is_last: bool = False) -> list[Marked[M]]:
        """Return the points that are certain now, with what was noted of their lines."""
        found: list[Marked[M]] = []
        for line in self._lines.feed(data) + (self._lines.end() if is_last else []):
            if may_have_prefix(line.text):
                for peeled in peel(line):
                    self._read(peeled, found)
            else:
                self._read(line, found)
        return found + self._held.end() if is_last else found

    def settled(self) -> list[Marked[M]]:
        """Return those of the points that wait that are likely enough if the log ends here."""
        return [one for one in self._held.end() if not one.point.value.is_integer()]

    def dropped(self) -> dict[str, int]:
        """Return how many points of each metric were taken for no series so far."""
        return self._held.dropped()

    def _read(self, line: LogLine, found: list[Marked[M]]) -> None:
        try:
            claim = self._claim(line.text)
        except (ValueError, OverflowError):  # a "number" of thousands of digits
            claim = NOTHING
        points = self._new(claim.points, line) if claim.points else claim.points
        mark: Any = self._note(line, points) if self._note else None
        if points:
            found += self._held.pass_on(points, claim, mark)

    def _new(self, claimed: list[Point], line: LogLine) -> list[Point]:
        """Return the points that no line before said, nor a rank that is not followed."""
        points, is_new = [], self._repeats.is_new
        for claim in claimed:
            step = claim.step
            is_bounded = step is None or -_MOST <= step < _MOST
            point = claim if is_bounded else claim._replace(step=None)
            if line.rank and not self._ranks.follows(line, point):
                continue
            if is_new(point, is_redrawn=line.is_redrawn):
                points.append(point)
        return points


def _claims_of(extractor: Extractor) -> Callable[[str], Claim]:
    """Return what claims the lines of a log."""
    if isinstance(extractor, Automatic):
        return extractor.claim
    return lambda text: Claim(extractor.points(text))
