"""Ultralytics YOLO (v5, v8 and later): the names stand in a header row, the values in bars.

`      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size`, then
`      1/10      5.22G      1.721      3.791      5.175         30        640: 100% 9/9 [...]`.
Of the validation's table only the row `all` counts.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, clock, report

_HEADER = Regex(r"^\s*Epoch\s+(?:GPU_mem|gpu_mem)\s+(.*\S)\s*$")
_ROW = Regex(
    r"^\s*(\d+)/(\d+)\s+(\d[\d.]*[GMK]?)\s+((?:[-\d.naninf]+\s+)+)"
    r"(\d+)(?::|\s)\s*(?:\d+%)?[^\d]*(?:(\d+)/(\d+))?(?:[^\[]*\[([\d:]+)<)?"
)
_TABLE = Regex(r"^\s*Class\s+Images\s+(?:Instances|Labels)\s+(.*?)(?::|\s+\d+%|$)")
_ALL = Regex(rf"^\s*all\s+\d+\s+\d+((?:\s+{PLAIN_NUMBER})+)\s*$")
_VALIDATION = ("precision", "recall", "mAP50", "mAP50-95")


class Log:
    """A YOLO log. Time elapsed: the epochs' bars, one after the other."""

    name: ClassVar[str] = "yolo"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """Before the header."""
        self._names: list[str] = []
        self._validating = False
        self._epoch: float | None = None
        self._past = self._bar = 0.0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "Epoch" in line and (match := _HEADER.search(line)):
            self._names = match[1].split()
            return []
        if "Class" in line and _TABLE.search(line):
            self._validating = True
            return []
        if self._validating and "all" in line and (match := _ALL.search(line)):
            self._validating = False
            values = match[1].split()[:4]
            pairs = list(zip(_VALIDATION, values, strict=False))
            return report(self.name, pairs, epoch=self._epoch, phase="val",
                          elapsed_s=self._past + self._bar or None)  # fmt: skip
        if not self._names or "/" not in line:
            return []
        if (match := _ROW.search(line)) is None:
            return []
        values = [*match[4].split(), match[5]]
        if len(values) != len(self._names):
            return []
        pairs = [
            (name, value)
            for name, value in zip(self._names, values, strict=True)
            if "loss" in name or name in ("box", "obj", "cls", "dfl", "seg", "pose", "kobj")
        ]
        pairs = [(name if "loss" in name else f"{name}_loss", value) for name, value in pairs]
        self._epoch = float(match[1])
        elapsed = self._elapsed(clock(match[8]) if match[8] else None)
        step = int(match[6]) if match[6] else None
        return report(self.name, pairs, step=step, epoch=self._epoch, elapsed_s=elapsed)

    def _elapsed(self, spent: float | None) -> float | None:
        if spent is None:
            return None
        if spent < self._bar:
            self._past += self._bar
        self._bar = spent
        return self._past + spent
