"""Flower's history of a federated training: rounds and values of each metric, at the end.

`History (loss, distributed):`, then `round 1: 0.62`; `History (metrics, centralized):`, then
`{'accuracy': [(1, 0.55),`, then `(2, 0.61)]}`.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_HEADING = Regex(r"\bHistory \((?:loss|metrics), ")
_ROUND = Regex(rf"\bround (\d{{1,9}}): ({PLAIN_NUMBER})")
_ENTRY = Regex(rf"'([\w/-]{{1,60}})': \[|\((\d{{1,9}}), ({PLAIN_NUMBER})\)")


class Log:
    """A log with such a history."""

    name: ClassVar[str] = "flower"
    partial: ClassVar[bool] = True

    def __init__(self) -> None:
        self._is_begun = False
        self._metric = ""  # whose list of rounds comes

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may begin a history, or belong to one."""
        return any(part in lower for part in ("history (", "round 0: ", "(0, 0", "(0, nan"))

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if _HEADING.search(line):
            self._is_begun, self._metric = True, ""
        if not self._is_begun:
            return []
        if match := _ROUND.search(line):
            return report(self.name, [("loss", match[2])], step=int(match[1]))
        points: list[Point] = []
        for entry in _ENTRY.finditer(line):
            self._metric = entry[1] or self._metric
            if entry[2] and self._metric:
                points += report(self.name, [(self._metric, entry[3])], step=int(entry[2]))
        return points
