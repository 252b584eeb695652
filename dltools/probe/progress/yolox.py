"""YOLOX: `epoch: 56/300, iter: 10/114, mem: 9000Mb, ..., total_loss: 3.2, iou_loss: 1.6, ...`."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_HEAD = Regex(r"\bepoch: (\d+)/\d+, iter: (\d+)/\d+, ")
_PAIR = Regex(rf"\b(\w+): ({PLAIN_NUMBER})(?=,|$)")


class Log:
    """A YOLOX log."""

    name: ClassVar[str] = "yolox"
    partial: ClassVar[bool] = False

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "epoch: " not in line or "iter: " not in line or "loss" not in line:
            return []
        if (match := _HEAD.search(line)) is None:
            return []
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.end()) if "loss" in m[1]]
        return report(self.name, pairs, step=int(match[2]), epoch=float(match[1]))
