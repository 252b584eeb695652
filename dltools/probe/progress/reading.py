"""The points of one log, bytes in."""

from __future__ import annotations

from dltools.probe.progress.base import Extractor, Point
from dltools.probe.progress.text import Lines


class Log:
    """Reads one log, given in pieces of any size; a redrawn bar gives one point per step."""

    def __init__(self, extractor: Extractor) -> None:
        """Nothing is read yet."""
        self._extractor = extractor
        self._lines = Lines()
        self._last: dict[str, tuple[int, float | None]] = {}

    def feed(self, data: bytes) -> list[Point]:
        """Return the points of the lines that are now complete."""
        return self._points(self._lines.feed(data))

    def end(self) -> list[Point]:
        """Return the points of the last line, which had no end."""
        return self._points(self._lines.end())

    def _points(self, lines: list[str]) -> list[Point]:
        found = []
        for line in lines:
            for point in self._extractor.points(line):
                if point.step is not None:
                    at = (point.step, point.epoch)
                    if self._last.get(point.metric) == at:
                        continue
                    self._last[point.metric] = at
                found.append(point)
        return found
