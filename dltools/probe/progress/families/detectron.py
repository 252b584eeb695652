"""Detectron2, maskrcnn-benchmark, COCO's summary; MetricLogger of torchvision, DETR and DeiT.

`eta: 0:14:15  iter: 19  total_loss: 3.505  loss_cls: 1.285`; `loss: 1.27 (1.46)` is the value and,
in parentheses, the mean so far; `Epoch: [0]  [ 0/65]  eta: ...  loss: 7.6 (7.6)`. COCO's summary is
from 0 to 1; Detectron2's `copypaste` repeats it in percent, and counts if the summary is missing.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_PAIR = Regex(rf"(?:^|\s)([A-Za-z_][\w/.-]*): ({PLAIN_NUMBER})(?=[\s(]|$)")
_ITER = Regex(r"\biter: (\d{1,18}) ")
_LOGGER = Regex(r"(Epoch|Test|Val|Eval)\w*: ?(?:\[(\d{1,9})\] )?\s*\[\s*(\d{1,18})/\d+\]\s+eta: ")
_COCO = Regex(
    r"Average (Precision|Recall)\s+\((?:AP|AR)\) @\[ IoU=(0\.50:0\.95|0\.50|0\.75)\s*\| area=\s*all"
    rf" \| maxDets=\s*(\d+) \] = ({PLAIN_NUMBER})"
)
_TASK = Regex(r"(?:Evaluate annotation type \*|IoU metric: |copypaste: Task: )(\w+)")
_COPY = Regex(r"copypaste: (.*)$")
_KEPT = ("loss", "acc", "error", "grad_norm")


def summary(line: str) -> list[tuple[str, str]]:
    """Return the main lines of COCO's summary as (name, value), 0 to 1; [] for any other line.

    -1 means that there was nothing to find: it is no value.
    """
    match = _COCO.search(line)
    if match is None or match[1] == "Recall" or match[2] == "0.75" or match[4].startswith("-"):
        return []
    return [("mAP" if ":" in match[2] else "mAP50", match[4])]


class Log:
    """A log of one of them."""

    name: ClassVar[str] = "detectron"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = (
        "eta: ",
        ".events]: ",
        "iou=",
        "copypaste: ",
        "evaluate annotation",
        "iou metric: ",
    )

    def __init__(self) -> None:
        self._epoch: float | None = None
        self._step: int | None = None
        self._columns: list[str] = []
        self._task = ""
        self._summed = False  # COCO's own summary was seen

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "eta: " in line or ".events]: " in line:
            return self._training(line)
        if "IoU=" in line:
            pairs = [(self._task + name, value) for name, value in summary(line)]
            self._summed = self._summed or bool(pairs)
            return report(self.name, pairs, step=self._step, epoch=self._epoch, phase="val")
        if "copypaste: " in line or "Evaluate annotation" in line or "IoU metric: " in line:
            if match := _TASK.search(line):
                self._task = "" if match[1] == "bbox" else f"{match[1]}_"
            elif not self._summed and (match := _COPY.search(line)):
                return self._copypaste(match[1])
        return []

    def _training(self, line: str) -> list[Point]:
        if "loss" not in line:
            return []
        phase = ""
        if match := _LOGGER.search(line):
            step = int(match[3])
            if match[2]:
                self._epoch = float(match[2])
            if match[1] != "Epoch":
                phase = "val"
        elif match := _ITER.search(line):
            step = int(match[1])
        else:
            return []
        if not phase:
            self._step = step
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.start())]
        wanted = [p for p in pairs if any(word in p[0].lower() for word in _KEPT)]
        return report(self.name, wanted, step=step, epoch=self._epoch, phase=phase)

    def _copypaste(self, text: str) -> list[Point]:
        fields = text.strip().split(",")
        try:
            values = [float(field) for field in fields]
        except ValueError:
            if all(field.replace("-", "").isalnum() for field in fields):
                self._columns = fields
            return []
        if len(values) != len(self._columns):
            return []
        wanted = [
            (f"{self._task}m{name}", value)
            for name, value in zip(self._columns, values, strict=True)
            if name in ("AP", "AP50", "AP75")
        ]
        return report(self.name, wanted, step=self._step, epoch=self._epoch, phase="val")
