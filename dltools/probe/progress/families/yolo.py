"""Ultralytics YOLO (v5, v8 and later): names in a header row, values in bars.

`      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size`, then
`      1/10      5.22G      1.721      3.791      5.175         30        640: 100% 9/9 [...]`.
In the table of the validation only the row `all` counts.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, clock, report

_HEADER = Regex(r"^\s*Epoch\s+(?:(GPU_mem|gpu_mem)\s+)?(\S.*)$")
_ROW = Regex(r"^\s*(\d{1,9})/\d+\s")
_LAST = Regex(r"(?:^|\s)(?:Instances|Size|labels|targets|img_size)\s")
_BAR = Regex(
    r"(?:^|[\s|])(\d{1,18})/\d+ "
    r"(?:\[([\d:]{1,16})<|(?:[\d.]{1,16}\w+/\w+)? ([\d:.]{1,16})s?(?:<|\s|$))"
)
_TABLE = Regex(r"^\s*Class\s+Images\s+(?:Instances|Labels|Targets)\s")
_ALL = Regex(rf"^\s*all\s+\d+\s+{PLAIN_NUMBER}((?:\s+{PLAIN_NUMBER})+)\s*$")
_CLASSIFIED = Regex(rf"^\s*all\s+({PLAIN_NUMBER})\s+({PLAIN_NUMBER})\s*$")
_LONGEST_ROW = 1_000
_LOSSES = ("box", "obj", "cls", "dfl", "seg", "pose", "kobj", "total")
_VALIDATION = ("precision", "recall", "mAP50", "mAP50-95")


class Log:
    """A YOLO log. Time elapsed: the sum of the times of the epochs' bars."""

    name: ClassVar[str] = "yolo"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("epoch", "class", "all", "/")

    def __init__(self) -> None:
        self._names: list[str] = []
        self._has_memory = False
        self._table = ""
        self._epoch: float | None = None
        self._past = self._bar = 0.0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "Epoch" in line and (match := _HEADER.search(line)) and _LAST.search(f"{line} "):
            self._names, self._has_memory = match[2].split(), match[1] is not None
            return []
        if ("Class" in line and _TABLE.search(line)) or "classes   top1_acc   top5_acc" in line:
            self._table = "boxes" if "Class" in line else "classes"
            return []
        if self._table and "all" in line:
            return self._validation(line)
        if not self._names or "/" not in line:
            return []
        if (match := _ROW.search(line)) is None:
            return []
        fields = line[match.end() : match.end() + _LONGEST_ROW].split()[self._has_memory :]
        values = [field.rstrip(":") for field in fields[: len(self._names)]]
        if len(values) != len(self._names):
            return []
        pairs = [
            (name if "loss" in name else f"{name}_loss", value)
            for name, value in zip(self._names, values, strict=True)
            if "loss" in name or name in _LOSSES
        ]
        bar = _BAR.search(line, match.end())
        spent = _seconds(bar[2] or bar[3]) if bar else None
        elapsed = self._elapsed(float(match[1]), spent)
        step = int(bar[1]) if bar else None
        return report(self.name, pairs, step=step, epoch=self._epoch, elapsed_s=elapsed)

    def _validation(self, line: str) -> list[Point]:
        if self._table == "boxes" and (match := _ALL.search(line)):
            pairs = list(zip(_VALIDATION, match[1].split()[:4], strict=False))
        elif self._table == "classes" and (match := _CLASSIFIED.search(line)):
            pairs = [("top1_acc", match[1]), ("top5_acc", match[2])]
        else:
            return []
        self._table = ""
        return report(
            self.name,
            pairs,
            epoch=self._epoch,
            phase="val",
            elapsed_s=self._past + self._bar or None,
        )

    def _elapsed(self, epoch: float, spent: float | None) -> float | None:
        """Return the time elapsed; the bar of each epoch begins at zero."""
        if epoch != self._epoch or (spent is not None and spent < self._bar):
            self._past += self._bar
            self._bar = 0.0
        self._epoch = epoch
        if spent is None:
            return None
        self._bar = spent
        return self._past + spent


def _seconds(text: str) -> float | None:
    """Return the seconds of 01:10, or of 11.5."""
    if ":" in text:
        return clock(text)
    return float(text) if text.replace(".", "", 1).isdecimal() else None
