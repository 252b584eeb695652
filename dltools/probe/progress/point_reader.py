"""The points of one log, given as bytes: peel, claim, hold, drop what comes twice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, NamedTuple

from dltools.probe.progress.base import NOTHING, Claim, Extractor, Point
from dltools.probe.progress.detect import Automatic
from dltools.probe.progress.drawn import Bars, Drawings
from dltools.probe.progress.held import Held, M, Marked
from dltools.probe.progress.kinds import Kind, Kinds
from dltools.probe.progress.log_lines import LONGEST_LINE, LogLine, LogLines, Redrawn
from dltools.probe.progress.peel import peel
from dltools.probe.progress.ranks import Ranks
from dltools.probe.progress.repeats import Repeats

Note = Callable[[LogLine, list[Point]], M]
"""What a caller notes of a line and of what was found in it, certain or not."""


NoteDrawn = Callable[[list[float]], Sequence[M]]
"""What a caller notes of drawings that were read together, from the job's own times of them."""


class Together(NamedTuple, Generic[M]):
    """Drawings that were read together, and what was noted of each."""

    marks: Sequence[M]
    drawings: Drawings

    def marked(self) -> list[Marked[M]]:
        """Return their points one by one."""
        pairs = zip(self.marks, self.drawings.points(), strict=True)
        return [(mark, point) for mark, points in pairs for point in points]


class PointReader(Generic[M]):
    """Reads one log, given in pieces of any size.

    `note` is called for each line in order; a point comes with what it returned for the point's
    line. Points that are doubtful come later than their line, those of one metric in order. With
    `note_drawn` the drawings of a bar are read together where they can be; `note` is not called for
    these.
    """

    def __init__(
        self,
        extractor: Extractor,
        note: Note[M] | None = None,
        note_drawn: NoteDrawn[M] | None = None,
    ) -> None:
        self._finder = extractor if isinstance(extractor, Automatic) else None
        self._note_drawn = note_drawn
        self._bars = Bars(self._finder.bar_family) if self._finder and note_drawn else None
        self._claim = _claims_of(extractor)
        self._kind = (self._finder.kinds if self._finder else Kinds()).of
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
        for block in self.blocks(data, is_last=is_last):
            found += block.marked() if isinstance(block, Together) else block
        return found

    def blocks(
        self, data: bytes, *, is_last: bool = False
    ) -> Iterator[list[Marked[M]] | Together[M]]:
        """Yield what `marked` returns, drawings that were read together in one block."""
        found: list[Marked[M]] = []
        pieces = self._lines.pieces(data)
        if is_last:
            pieces += self._lines.last_pieces()
        for piece in pieces:
            if not isinstance(piece, Redrawn):
                self._line(piece, found)
                continue
            found = yield from self._redrawn(piece, found)
        yield found + self._held.end() if is_last else found

    def settled(self) -> list[Marked[M]]:
        """Return those of the points that wait that are likely enough if the log ends here."""
        return [one for one in self._held.end() if not one[1].value.is_integer()]

    def dropped(self) -> dict[str, int]:
        """Return how many points of each metric were taken for no series so far."""
        return self._held.dropped()

    def _redrawn(
        self, piece: Redrawn, found: list[Marked[M]]
    ) -> Generator[list[Marked[M]] | Together[M], None, list[Marked[M]]]:
        """Yield the points of a line's drawings after those found before; return the last ones."""
        bars = self._bars
        if bars is None:
            for line in piece.lines():
                self._line(line, found)
            return found
        text, at = piece.text, 0
        while at < len(text):
            if (read := bars.read(text, at)) is not None:
                drawings, count, at = read
                if (together := self._together(drawings, count)) is not None:
                    yield found
                    yield together
                    found = []
                continue
            end = text.find("\r", at)
            drawing = text[at : end if end >= 0 else len(text)]
            at += len(drawing) + 1
            if drawing and not drawing.isspace():
                line = LogLine(drawing[:LONGEST_LINE], is_redrawn=True)
                bars.learn(drawing, self._line(line, found))
        return found

    def _together(self, drawings: Drawings, count: int) -> Together[M] | None:
        """Return drawings that were read together without those that say nothing new."""
        if self._finder is not None:
            self._finder.count(drawings.source, count)
        self._held.trust(metric for metric, _ in drawings.metrics)
        drawings = self._repeats.new_drawings(drawings)
        if not drawings.steps or self._note_drawn is None:
            return None
        return Together(self._note_drawn(drawings.elapsed), drawings)

    def _line(self, line: LogLine, found: list[Marked[M]]) -> list[Point]:
        """Read a line; return the points in it, repeated ones too, [] where it had a prefix."""
        kind = self._kind(line[0])
        if kind.prefix is None:
            return self._read(line, kind, found)
        for one in peel(line, kind.prefix):
            self._read(one, self._kind(one.text), found)
        return []

    def _read(self, line: LogLine, kind: Kind, found: list[Marked[M]]) -> list[Point]:
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
        return claim[0]


def _claims_of(extractor: Extractor) -> Callable[[str, Kind], Claim]:
    """Return what claims the lines of a log."""
    if isinstance(extractor, Automatic):
        return extractor.claim_of
    return lambda text, _: Claim(extractor.points(text))
