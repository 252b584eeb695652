"""The points of one log, given as bytes: peel, claim, hold, drop what comes twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from dltools.probe.progress.base import NOTHING, Claim, Extractor, Point
from dltools.probe.progress.detect import Automatic
from dltools.probe.progress.held import Held, M, Marked
from dltools.probe.progress.kinds import Kind, Kinds
from dltools.probe.progress.log_lines import LogLine, LogLines
from dltools.probe.progress.peel import peel
from dltools.probe.progress.ranks import Ranks
from dltools.probe.progress.repeats import Repeats

Note = Callable[[LogLine, list[Point]], M]
"""What a caller notes of a line and of what was found in it, certain or not."""


class PointReader(Generic[M]):
    """Reads one log, given in pieces of any size.

    `note` is called for each line in order; a point comes with what it returned for the point's
    line. Points that are doubtful come later than their line, those of one metric in order.
    """

    def __init__(self, extractor: Extractor, note: Note[M] | None = None) -> None:
        self._claim = _claims_of(extractor)
        self._kind = (extractor.kinds if isinstance(extractor, Automatic) else Kinds()).of
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
        for line in self._lines.feed(data):
            self._line(line, found)
        if is_last:
            for line in self._lines.end():
                self._line(line, found)
            found += self._held.end()
        return found

    def settled(self) -> list[Marked[M]]:
        """Return those of the points that wait that are likely enough if the log ends here."""
        return [one for one in self._held.end() if not one[1].value.is_integer()]

    def dropped(self) -> dict[str, int]:
        """Return how many points of each metric were taken for no series so far."""
        return self._held.dropped()

    def _line(self, line: LogLine, found: list[Marked[M]]) -> None:
        kind = self._kind(line[0])
        if kind.prefix is None:
            self._read(line, kind, found)
            return
        for one in peel(line, kind.prefix):
            self._read(one, self._kind(one.text), found)

    def _read(self, line: LogLine, kind: Kind, found: list[Marked[M]]) -> None:
        try:
            claim = self._claim(line[0], kind)
        except (ValueError, OverflowError):  # a "number" of thousands of digits
            claim = NOTHING
        points = claim[0]
        if points:
            if kind.may_have_rank or line[3]:
                points = self._ranks.followed(line, points)
            points = self._repeats.new(points, is_redrawn=line[1])
        mark: Any = self._note(line, points) if self._note else None
        if points:
            found += self._held.pass_on(points, claim, mark)


def _claims_of(extractor: Extractor) -> Callable[[str, Kind], Claim]:
    """Return what claims the lines of a log."""
    if isinstance(extractor, Automatic):
        return extractor.claim_of
    return lambda text, _: Claim(extractor.points(text))
