"""The points of one log, bytes in."""

from __future__ import annotations

from collections.abc import Iterator

from dltools.probe.progress.base import Extractor, Point
from dltools.probe.progress.text import Lines

_LOOSE = ("named", "pattern")
"""Sources that may not know the epoch: a step that comes again may well be another epoch's."""


class Log:
    """Reads one log, given in pieces of any size; a redrawn bar gives one point per step."""

    def __init__(self, extractor: Extractor) -> None:
        """Nothing is read yet."""
        self._extractor = extractor
        self._lines = Lines()
        self._last: dict[str, tuple[int, float | None]] = {}

    def feed(self, data: bytes) -> list[Point]:
        """Return the points of the lines that are now complete."""
        return [p for line, redrawn in self._lines.feed(data) for p in self._new(line, redrawn)]

    def end(self) -> list[Point]:
        """Return the points of the last line, which had no end."""
        return [p for line, redrawn in self._lines.end() for p in self._new(line, redrawn)]

    def by_line(self, data: bytes, *, last: bool = False) -> Iterator[tuple[str, list[Point]]]:
        """Yield each complete line with its points; with `last`, the one without an end too."""
        for line, redrawn in self._lines.feed(data) + (self._lines.end() if last else []):
            yield line, self._new(line, redrawn)

    def _new(self, line: str, redrawn: bool) -> list[Point]:
        """Return the points of a line, less what the drawing before had shown."""
        try:
            found = self._extractor.points(line)
        except (ValueError, OverflowError):  # a "number" of thousands of digits
            return []
        fresh = []
        for point in found:
            if point.step is not None and not -(2**63) <= point.step < 2**63:
                point = point._replace(step=None)
            if point.step is not None:
                at = (point.step, point.epoch)
                if self._last.get(point.metric) == at and (redrawn or point.source not in _LOOSE):
                    continue
                self._last[point.metric] = at
            fresh.append(point)
        return fresh
