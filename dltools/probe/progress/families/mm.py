"""OpenMMLab (MMDetection, MMEngine): text lines and JSON lines.

`Epoch(train) [1][  50/30895]  base_lr: ... loss: 859.6`, `Epoch [1][50/7330]  lr: ..., loss: 1.2`,
`{"mode": "train", "epoch": 1, "iter": 10, "loss": 0.068}`.
"""

from __future__ import annotations

import json
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_HEAD = Regex(
    r"\b(Epoch|Iter)(?:\((train|val|test)\))? {0,3}(?:\[\s*(\d{1,9})\])?\s*\[\s*(\d{1,18})(/\d+)?\]"
)
_PAIR = Regex(rf"(?:^|[\s,\t])([A-Za-z_][\w/.@-]*): ({PLAIN_NUMBER})(?=[\s,]|$)")
_KEPT = (
    "loss",
    "acc",
    "Acc",
    "grad_norm",
    "mAP",
    "AP",
    "mIoU",
    "AR",
    "PSNR",
    "SSIM",
    "error",
    "top",
)


def _wanted(name: str, value: str) -> bool:
    """Tell whether a value counts: COCO's -1 means that there was nothing to find, and `copypaste`
    lists many values."""
    if "scale" in name or "copypaste" in name or not any(word in name for word in _KEPT):
        return False
    return not (value.startswith("-1") and float(value) == -1 and ("AP" in name or "AR" in name))


class Log:
    """An OpenMMLab log."""

    name: ClassVar[str] = "mm"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ('{"', "epoch", "iter")

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if line.startswith('{"') and ('"mode": ' in line or '"data_time": ' in line):
            return self._json(line)
        if ("Epoch" not in line and "Iter" not in line) or ": " not in line:
            return []
        if "mm" not in line and "eta: " not in line and "data_time: " not in line:
            return []
        if (match := _HEAD.search(line)) is None or not (match[2] or match[5]):
            return []
        phase = match[2] or ""
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.end())]
        wanted = [pair for pair in pairs if _wanted(*pair)]
        epoch = float(match[3]) if match[3] and match[1] == "Epoch" else None
        return report(
            self.name,
            wanted,
            step=int(match[4]),
            epoch=epoch,
            phase="" if phase == "train" else phase,
        )

    def _json(self, line: str) -> list[Point]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return []
        if not isinstance(record, dict):
            return []
        pairs = [
            (name, str(value))
            for name, value in record.items()
            if isinstance(value, (int, float)) and _wanted(name, str(value))
        ]
        step, epoch = record.get("iter", record.get("step")), record.get("epoch")
        mode = record.get("mode", "train" if "loss" in record else "val")
        return report(
            self.name,
            pairs,
            step=step if isinstance(step, int) and abs(step) < 2**63 else None,
            epoch=float(epoch) if isinstance(epoch, (int, float)) and abs(epoch) < 1e9 else None,
            phase="" if mode == "train" else "val",
        )
