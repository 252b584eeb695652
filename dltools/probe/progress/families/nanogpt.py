"""nanoGPT, modded-nanogpt, llm.c, LitGPT."""

from __future__ import annotations

import re
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

N = PLAIN_NUMBER
_ITER = Regex(rf"^iter (\d+): loss ({N}), time ({N})ms")
_EVAL = Regex(rf"^step (\d+): train loss ({N}), val loss ({N})")
_MODDED = Regex(rf"^step:(\d+)/\d+ (?:(train_loss|val_loss):({N}) )?(?:train_time:({N})(ms|s))?")
_LLMC = Regex(rf"^s:(\d+) (trl|tel|eval):({N})(?:.*? norm:({N}))?")
_LLMC_SCREEN = Regex(
    rf"^\s*step\s+(\d+)/\d+ \| (?:train )?loss ({N})(?: \([^)]*\))?\s*\| (?:grad )?norm ({N})"
)
_LITGPT = Regex(
    rf"^Epoch (\d+) \| iter (\d+) step \d+ \| loss train: ({N}),\s*val: (n/a|{N})", re.IGNORECASE
)
_NAMES = {"trl": "train_loss", "tel": "val_loss", "eval": "val_hellaswag"}


class Log:
    """A log of one of them. Time elapsed: train_time, or the sum of the iterations."""

    name: ClassVar[str] = "nanogpt"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("step:", "iter ", "s:", "loss")

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._iter: int | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if line.startswith("step:") and (match := _MODDED.search(line)):
            if match[2] is None:
                return []
            elapsed = None
            if match[4]:
                elapsed = float(match[4]) / (1000 if match[5] == "ms" else 1)
            return report(self.name, [(match[2], match[3])], step=int(match[1]), elapsed_s=elapsed)
        if line.startswith("iter ") and (match := _ITER.search(line)):
            # Lines come every so many iterations; the time is that of one.
            step = int(match[1])
            since = 1 if self._iter is None else max(1, step - self._iter)
            self._iter = step
            self._elapsed += since * float(match[3]) / 1000
            return report(self.name, [("loss", match[2])], step=step, elapsed_s=self._elapsed)
        if line.startswith("s:") and (match := _LLMC.search(line)):
            pairs = [(_NAMES[match[2]], match[3])]
            if match[4]:
                pairs.append(("grad_norm", match[4]))
            return _renamed(report(self.name, pairs, step=int(match[1])), match[2])
        if "loss" not in line:
            return []
        if match := _EVAL.search(line):
            pairs = [("train loss", match[2]), ("val loss", match[3])]
            return report(self.name, pairs, step=int(match[1]), elapsed_s=self._elapsed or None)
        if match := _LLMC_SCREEN.search(line):
            pairs = [("loss", match[2]), ("grad_norm", match[3])]
            return report(self.name, pairs, step=int(match[1]))
        if match := _LITGPT.search(line):
            pairs = [("loss train", match[3]), ("loss val", match[4])]
            return report(self.name, pairs, step=int(match[2]), epoch=float(match[1]))
        return []


def _renamed(points: list[Point], printed: str) -> list[Point]:
    return [p._replace(original="norm" if p.metric == "grad_norm" else printed) for p in points]
