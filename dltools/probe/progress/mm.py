"""OpenMMLab (MMDetection, MMEngine): text lines and JSON lines.

`Epoch(train) [1][  50/30895]  base_lr: ... loss: 859.6`, `Epoch [1][50/7330]  lr: ..., loss: 1.2`,
`{"mode": "train", "epoch": 1, "iter": 10, "loss": 0.068}`.
"""

from __future__ import annotations

import json
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_HEAD = Regex(r"\b(Epoch|Iter)(?:\((train|val|test)\))? ?(?:\[\s*(\d+)\])?\s*\[\s*(\d+)/(\d+)\]")
_PAIR = Regex(rf"(?:^|[\s,\t])([A-Za-z_][\w/.@-]*): ({PLAIN_NUMBER})(?=[\s,]|$)")
_KEPT = ("loss", "acc", "grad_norm", "mAP", "AP", "mIoU", "AR", "PSNR", "SSIM", "error", "top")


def _wanted(name: str) -> bool:
    return any(word in name for word in _KEPT) and "scale" not in name


class Log:
    """An OpenMMLab log."""

    name: ClassVar[str] = "mm"
    partial: ClassVar[bool] = False

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if line.startswith('{"') and ('"mode": ' in line or '"base_lr": ' in line):
            return self._json(line)
        if ("Epoch" not in line and "Iter" not in line) or ": " not in line:
            return []
        if "mm" not in line and "eta: " not in line and "data_time: " not in line:
            return []
        if (match := _HEAD.search(line)) is None:
            return []
        phase = match[2] or ("val" if "Epoch(val)" in line else "")
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.end())]
        wanted = [pair for pair in pairs if _wanted(pair[0])]
        if match[1] == "Iter":
            step, epoch = int(match[4]), None
        else:
            step, epoch = int(match[4]), float(match[3]) if match[3] else None
        return report(self.name, wanted, step=step, epoch=epoch,
                      phase="" if phase == "train" else phase)  # fmt: skip

    def _json(self, line: str) -> list[Point]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return []
        if not isinstance(record, dict):
            return []
        pairs = [
            (name, float(value))
            for name, value in record.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and _wanted(name)
        ]
        step, epoch = record.get("iter", record.get("step")), record.get("epoch")
        mode = record.get("mode", "train")
        return report(
            self.name,
            pairs,
            step=step if isinstance(step, int) and step < 2**63 else None,
            epoch=float(epoch) if isinstance(epoch, (int, float)) else None,
            phase="" if mode == "train" else "val",
        )
