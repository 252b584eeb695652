"""NVIDIA's PyTorch examples: GNMT, SSD, and DLLogger.

SSD's `Average Loss` starts at zero and rises: it is not taken for a loss.
"""

from __future__ import annotations

import json
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_GNMT = Regex(rf"\b(TRAIN|VALIDATION|TEST) \[(\d+)\]\[(\d+)/\d+\].*?\b(Loss(?:/\w+)?) ({N})")
_SUMMARY = Regex(r"\bSummary: Epoch: (\d+)\s")
_SUMMARY_PAIR = Regex(rf"(Training|Validation|Test) (Loss|BLEU|Accuracy|Perplexity): ({N})")
_SSD = Regex(rf"^\W*Iteration:\s+(\d+), Loss function: ({N}), Average Loss: {N}")
_DLL = Regex(r"^DLL [\d-]+ [\d:.]+ - (?:Epoch: (\d+) )?(?:(?:Iteration|Step): (\d+) )?")
_DLL_PAIR = Regex(rf"([\w./]*(?:loss|acc|perplexity|top1|top5)[\w./]*)\s*: ({N})(?= |$)")
_PHASES = {"TRAIN": "", "VALIDATION": "val", "TEST": "test"}


class Log:
    """A log of one of them."""

    name: ClassVar[str] = "nvidia"
    partial: ClassVar[bool] = False

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "Loss" in line:
            if match := _GNMT.search(line):
                return report(self.name, [(match[4], match[5])], step=int(match[3]),
                              epoch=float(match[2]), phase=_PHASES[match[1]])  # fmt: skip
            if match := _SSD.search(line):
                return report(self.name, [("Loss", match[2])], step=int(match[1]))
            if match := _SUMMARY.search(line):
                pairs = [(f"{m[1]} {m[2]}", m[3]) for m in _SUMMARY_PAIR.finditer(line)]
                return report(self.name, pairs, epoch=float(match[1]))
        if line.startswith("DLL "):
            match = _DLL.search(line)
            pairs = [(m[1], m[2]) for m in _DLL_PAIR.finditer(line)]
            if match is None or not pairs:
                return []
            return report(self.name, pairs, step=int(match[2]) if match[2] else None,
                          epoch=float(match[1]) if match[1] else None)  # fmt: skip
        if line.startswith("DLLL {"):
            return self._json(line[5:])
        return []

    def _json(self, text: str) -> list[Point]:
        try:
            record = json.loads(text)
            data, at = record["data"], record["step"]
            if record["type"] != "LOG":
                return []
            pairs = [(name, float(value)) for name, value in data.items()
                     if isinstance(value, (int, float))]  # fmt: skip
            at = [part for part in at if isinstance(part, int)] if isinstance(at, list) else [at]
            return report(
                self.name,
                pairs,
                step=at[-1] if len(at) > 1 or (at and isinstance(at[0], int)) else None,
                epoch=float(at[0]) if len(at) > 1 else None,
                elapsed_s=float(record["elapsedtime"]) if "elapsedtime" in record else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return []
