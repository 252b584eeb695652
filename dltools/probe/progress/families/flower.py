"""Flower's history of a federated training: rounds and values of each metric, at the end.

`History (loss, distributed):`, then `round 1: 0.62`; `History (metrics, centralized):`, then
`{'accuracy': [(1, 0.55),`, then `(2, 0.61)]}`.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_HEADING = "History ("
_ENTRY = Regex(
    rf"(History) \(|\bround (\d{{1,9}}): ({PLAIN_NUMBER})"
    rf"|'([\w/-]{{1,60}})': \[|\((\d{{1,9}}), ({PLAIN_NUMBER})\)"
)


class Log:
    """A log with such a history."""

    name: ClassVar[str] = "flower"
    partial: ClassVar[bool] = True

    def __init__(self) -> None:
        self._metric = ""  # whose rounds come, "" before a history

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may begin a history, or belong to one."""
        return any(part in lower for part in ("history (", "round 0: ", "(0, 0", "(0, nan"))

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if not self._metric and _HEADING not in line:
            return []
        points: list[Point] = []
        for entry in _ENTRY.finditer(line):
            if entry[1]:
                self._metric = "loss"
            self._metric = entry[4] or self._metric
            step, value = entry[2] or entry[5], entry[3] or entry[6]
            if step and self._metric:
                points += report(self.name, [(self._metric, value)], step=int(step))
        return points
