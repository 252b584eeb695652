"""Detectron2, maskrcnn-benchmark, and the MetricLogger of torchvision, DETR and DeiT.

`eta: 0:14:15  iter: 19  total_loss: 3.505  loss_cls: 1.285`; `loss: 1.27 (1.46)` is the value and,
in parentheses, the mean so far; `Epoch: [0]  [ 0/65]  eta: ...  loss: 7.6 (7.6)`. COCO's summary.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_PAIR = Regex(rf"(?:^|\s)([A-Za-z_][\w/.-]*): ({PLAIN_NUMBER})(?=[\s(]|$)")
_ITER = Regex(r"\biter: (\d+) ")
_LOGGER = Regex(r"(Epoch|Test|Val|Eval)\w*: ?(?:\[(\d+)\] )?\s*\[\s*(\d+)/\d+\]\s+eta: ")
_COCO = Regex(
    r"Average (Precision|Recall)\s+\((?:AP|AR)\) @\[ IoU=(0\.50:0\.95|0\.50|0\.75)\s*\| area=\s*all"
    rf" \| maxDets=\s*(\d+) \] = ({PLAIN_NUMBER})"
)
_COPY = Regex(r"copypaste: (.*)$")
_KEPT = ("loss", "acc", "error", "grad_norm")


class Log:
    """A log of one of them."""

    name: ClassVar[str] = "detectron"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """Before the first iteration."""
        self._epoch: float | None = None
        self._step: int | None = None
        self._columns: list[str] = []

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "eta: " in line:
            return self._training(line)
        if "IoU=" in line and (match := _COCO.search(line)):
            if match[1] == "Recall" or match[2] == "0.75":
                return []
            name = "mAP" if ":" in match[2] else "mAP50"
            return report(self.name, [(name, match[4])], step=self._step, epoch=self._epoch,
                          phase="val")  # fmt: skip
        if "copypaste: " in line and (match := _COPY.search(line)):
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
                phase = "test" if match[1] == "Test" else "val"
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
        pairs = [(f"m{name}" if name.startswith("AP") else name, value)
                 for name, value in zip(self._columns, values, strict=True)]  # fmt: skip
        wanted = [pair for pair in pairs if pair[0] in ("mAP", "mAP50", "mAP75")]
        return report(self.name, wanted, step=self._step, epoch=self._epoch, phase="val")
