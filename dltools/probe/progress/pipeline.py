"""Runs all steps of the pipeline, in order, on the bytes of one log.

The sources of logs use it: `log_source` of containers, and `saved_logs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from dltools.probe.progress.base import Extractor, Point
from dltools.probe.progress.clean_lines import LogLine, LogLines
from dltools.probe.progress.confirm import Confirmation, T, Tagged
from dltools.probe.progress.languages import in_english
from dltools.probe.progress.length import SaidLength
from dltools.probe.progress.line_shapes import NOTHING, Layout, Reading, Shapes
from dltools.probe.progress.match import Automatic
from dltools.probe.progress.named import BAR
from dltools.probe.progress.prefix import peel
from dltools.probe.progress.rank import Ranks
from dltools.probe.progress.repeats_and_redraws import Drawings, Repeats
from dltools.probe.progress.user_patterns import Pattern, PatternReader

TagOf = Callable[[LogLine, list[Point]], T]
"""Returns a caller's tag for a line, from the line and its points, certain or not."""


class PointReader(Generic[T]):
    """Reads one log, given in pieces of any size.

    `tag_of` is called for each line in order, and a point is returned with the tag of its line. A
    doubtful point is returned later than its line; the points of one metric stay in order.
    """

    def __init__(self, extractor: Extractor, tag_of: TagOf[T] | None = None) -> None:
        self._pattern = PatternReader(extractor) if isinstance(extractor, Pattern) else None
        self._match = _match_of(self._pattern or extractor)
        self._shapes = extractor.shapes if isinstance(extractor, Automatic) else Shapes()
        self._tag_of = tag_of
        self._lines = LogLines()
        self._ranks, self._repeats = Ranks(), Repeats()
        self._length = SaidLength()
        self._confirmation: Confirmation[T] = Confirmation()
        self._drawings: Drawings[T] = Drawings()

    def expect(self, data: bytes) -> None:
        """Hear what will be fed next: a pattern matches lines together."""
        if self._pattern:
            self._pattern.expect(data)

    def feed(self, data: bytes) -> list[Point]:
        """Return the points that are certain with the lines that are now complete."""
        return [point for _, point in self.tagged(data)]

    def end(self) -> list[Point]:
        """Return the points of the last line, if it has no end, and those that waited."""
        return [point for _, point in self.tagged(b"", is_last=True)]

    def tagged(self, data: bytes, *, is_last: bool = False) -> list[Tagged[T]]:
        """Return the points that are certain now, with the tags of their lines."""
        tagged: list[Tagged[T]] = []
        lines = self._lines.feed(data)
        if is_last:
            lines += self._lines.end()
        if self._pattern is None:
            lines = [
                line if line[0].isascii() else line._replace(text=in_english(line[0]))
                for line in lines
            ]
        layouts = self._shapes.of_lines([line[0] for line in lines])
        for line, layout in zip(lines, layouts, strict=True):
            if layout.prefix is not None:
                line = peel(line, layout.prefix)
                layout = self._shapes.of(line[0])
            self._read(line, layout, tagged)
        if is_last:
            tagged += self._drawings.end() + self._confirmation.end()
        return tagged

    def likely(self) -> list[Tagged[T]]:
        """Return the waiting points that count if the log ends here."""
        return self._confirmation.end(has_more=True) + self._drawings.end()

    def dropped(self) -> dict[str, int]:
        """Return by metric how many points belong to no series so far."""
        return self._confirmation.dropped()

    def _read(self, line: LogLine, layout: Layout, tagged: list[Tagged[T]]) -> None:
        """Add the points that are certain with a line without its prefix."""
        try:
            reading = self._match(line[0], layout)
        except (ValueError, OverflowError):  # a "number" of thousands of digits
            reading = NOTHING
        points = reading[0]
        if layout.length:
            self._length.read(line[0], layout.length)
        if layout.time:
            self._length.read_time(line[0], layout.time)
        if points:
            if self._length.is_new:
                points = self._length.added_to(points)
            if layout.may_have_rank or line[3]:
                points = self._ranks.followed(line, points)
            points = self._repeats.new(points, is_redrawn=line[1])
        tag: Any = self._tag_of(line, points) if self._tag_of else None
        if points:
            certain = self._confirmation.confirmed(points, reading, tag)
            waits = reading.awaits_bar or points[0][4] == BAR
            if line[1] or line[5] or self._drawings.held or waits:
                certain = self._drawings.settled(certain, line, waits=waits)
            tagged += certain
        elif self._drawings.held:
            tagged += self._drawings.settled([], line, shown=reading.shown)


def _match_of(extractor: Extractor) -> Callable[[str, Layout], Reading]:
    if isinstance(extractor, Automatic):
        return extractor.read
    return lambda text, _: Reading(extractor.points(text))
