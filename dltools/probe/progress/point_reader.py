"""The points of one log, given as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dltools.probe.progress.base import Extractor, Point
from dltools.probe.progress.log_lines import LogLine, LogLines

_LOOSE = ("named", "pattern")
"""Extractors that may not know the epoch: a step that comes again may belong to another epoch."""


class LinePoints(NamedTuple):
    """A line of a log, and its points."""

    text: str
    points: list[Point]


class PointReader:
    """Reads one log, given in pieces of any size; a redrawn bar gives one point for each step."""

    def __init__(self, extractor: Extractor) -> None:
        """Nothing is read yet."""
        self._extractor = extractor
        self._lines = LogLines()
        self._last: dict[str, tuple[int, float | None]] = {}

    def feed(self, data: bytes) -> list[Point]:
        """Return the points of the lines that are now complete."""
        return [point for line in self._lines.feed(data) for point in self._new(line)]

    def end(self) -> list[Point]:
        """Return the points of the last line, if it has no end."""
        return [point for line in self._lines.end() for point in self._new(line)]

    def by_line(self, data: bytes, *, is_last: bool = False) -> Iterator[LinePoints]:
        """Yield each complete line with its points; of the last data also a line without end."""
        for line in self._lines.feed(data) + (self._lines.end() if is_last else []):
            yield LinePoints(line.text, self._new(line))

    def _new(self, line: LogLine) -> list[Point]:
        """Return the points of a line, without those that the drawing before it showed."""
        try:
            found = self._extractor.points(line.text)
        except (ValueError, OverflowError):  # a "number" of thousands of digits
            return []
        fresh = []
        for point in found:
            if point.step is not None and not -(2**63) <= point.step < 2**63:
                point = point._replace(step=None)
            if point.step is not None:
                at = (point.step, point.epoch)
                if self._last.get(point.metric) == at and (
                    line.is_redrawn or point.source not in _LOOSE
                ):
                    continue
                self._last[point.metric] = at
            fresh.append(point)
        return fresh
