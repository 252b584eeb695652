"""PyTorch's ImageNet example: `Epoch: [0][  10/5005]  Loss 6.9 (7.0)  Acc@1 0.39 (0.28)`.

The mean of a validation stands in the line ` * Acc@1 76.130`; its batches give no points.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_IMAGENET = Regex(
    r"(?:^|\s)(?:(Epoch|Test|Train|Val): \[\s*(\d+)\](?:\[\s*(\d+)/\d+\])?"
    r"|(Test): \[\s*(\d+)/\d+\])"
)
_METER = Regex(rf"([A-Z][\w@./-]{{0,99}})\s+({N})\s*\(\s*{N}\)")
_TOP = Regex(rf"^\s*\*\s+(?:Prec|Acc)@1:? *({N})(?:\s+(?:Prec|Acc)@5:? *({N}))?")


class Log:
    """A log of the example."""

    name: ClassVar[str] = "pytorch"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("@", "loss")

    def __init__(self) -> None:
        self._epoch: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "@" not in line and "Loss" not in line:
            return []
        if "*" in line and (match := _TOP.search(line)):
            pairs = [("Acc@1", match[1]), *([("Acc@5", match[2])] if match[2] else [])]
            return report(self.name, pairs, epoch=self._epoch, phase="val")
        if ": [" not in line or "TRAIN" in line or (match := _IMAGENET.search(line)) is None:
            return []
        meters = [(m[1], m[2]) for m in _METER.finditer(line) if m[1] not in ("Time", "Data")]
        if not any(name.lower().startswith("loss") for name, _ in meters):
            return []
        if match[4]:
            return []
        if match[1] == "Epoch":
            self._epoch = float(match[2])
        if match[1] in ("Test", "Val"):
            return []
        step = int(match[3]) if match[3] else None
        return report(self.name, meters, step=step, epoch=self._epoch)
