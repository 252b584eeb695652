"""YOLOX: `epoch: 56/300, iter: 10/114, mem: 9000Mb, ..., total_loss: 3.2, iou_loss: 1.6, ...`.

COCO's summary follows an evaluation.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report
from dltools.probe.progress.families.detectron import summary

_HEAD = Regex(r"\bepoch: (\d{1,9})/\d+, iter: (\d{1,18})/\d+, ")
_PAIR = Regex(rf"\b(\w+): ({PLAIN_NUMBER})(?=,|$)")


class Log:
    """A YOLOX log."""

    name: ClassVar[str] = "yolox"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """No iteration has come yet."""
        self._step: int | None = None
        self._epoch: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "IoU=" in line and self._epoch is not None:
            return report(self.name, summary(line), step=self._step, epoch=self._epoch,
                          phase="val")  # fmt: skip
        if "epoch: " not in line or "iter: " not in line or "loss" not in line:
            return []
        if (match := _HEAD.search(line)) is None:
            return []
        self._epoch, self._step = float(match[1]), int(match[2])
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.end()) if "loss" in m[1]]
        return report(self.name, pairs, step=self._step, epoch=self._epoch)
