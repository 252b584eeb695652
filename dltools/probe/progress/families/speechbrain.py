"""SpeechBrain: `epoch: 2, lr: 1.00e+00 - train loss: 7.26e-01 - valid loss: 1.27, ...`."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_HEAD = Regex(r"(?:^|train_logger - )(?:[Ee]poch(?: loaded)?: (\d+)\b.*?) - (?=train|valid|test)")
_PAIR = Regex(rf"\b((?:train|valid|test) [\w /-]{{1,99}}?): ({N})(?=,| -|\s*$)")


class Log:
    """A SpeechBrain log."""

    name: ClassVar[str] = "speechbrain"
    partial: ClassVar[bool] = False

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "poch" not in line or (" - t" not in line and " - v" not in line):
            return []
        if (match := _HEAD.search(line)) is None:
            return []
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.end())]
        return report(self.name, pairs, epoch=float(match[1]))
