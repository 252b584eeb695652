"""NVIDIA's PyTorch examples: GNMT, SSD, and DLLogger.

SSD's `Average Loss` starts at zero and rises: it is no loss. Values that DLLogger gets with the
step PARAMETER are settings.
"""

from __future__ import annotations

import json
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_GNMT = Regex(
    rf"\b(TRAIN|VALIDATION|TEST) \[(\d{{1,9}})\]\[(\d{{1,18}})/\d+\].*?\b(Loss(?:/\w+)?) ({N})"
)
_SUMMARY = Regex(r"\bSummary: Epoch: (\d{1,9})\s")
_SUMMARY_PAIR = Regex(rf"(Training|Validation|Test) (Loss|BLEU|Accuracy|Perplexity): ({N})")
_SSD = Regex(rf"\bIteration:\s+(\d{{1,18}}), Loss function: ({N}), Average Loss: {N}")
_DLL = Regex(
    r"\bDLL [\d-]+ [\d:.]+ - (?!PARAMETER)(?:(?:Training )?Epoch: (\d{1,9}) )?"
    r"(?:(?:Training )?(?:Iteration|Step): (\d{1,18}) )?(?:Validation Iteration: (\d{1,18}) )?"
)
_DLL_PAIR = Regex(rf"(?<![\w./])([\w./]+)\s*: ({N})(?= |$)")
_DLL_KEPT = ("loss", "acc", "perplexity", "top1", "top5")
_PHASES = {"TRAIN": "", "VALIDATION": "val", "TEST": "test"}


class Log:
    """A log of one of them."""

    name: ClassVar[str] = "nvidia"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("loss", "dll")

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "Loss" in line:
            if match := _GNMT.search(line):
                return report(
                    self.name,
                    [(match[4], match[5])],
                    step=int(match[3]),
                    epoch=float(match[2]),
                    phase=_PHASES[match[1]],
                )
            if match := _SSD.search(line):
                return report(self.name, [("Loss", match[2])], step=int(match[1]))
            if match := _SUMMARY.search(line):
                pairs = [(f"{m[1]} {m[2]}", m[3]) for m in _SUMMARY_PAIR.finditer(line)]
                return report(self.name, pairs, epoch=float(match[1]))
        if "DLL" not in line:
            return []
        if (at := line.find("DLLL {")) >= 0:
            return self._json(line[at + 5 :])
        if match := _DLL.search(line):
            pairs = [
                (m[1], m[2])
                for m in _DLL_PAIR.finditer(line, match.end())
                if any(word in m[1] for word in _DLL_KEPT)
            ]
            step = match[3] or match[2]
            return report(
                self.name,
                pairs,
                step=int(step) if step else None,
                epoch=float(match[1]) if match[1] else None,
            )
        return []

    def _json(self, text: str) -> list[Point]:
        try:
            record = json.loads(text)
            data, at = record["data"], record["step"]
            if record["type"] != "LOG" or at == "PARAMETER":
                return []
            pairs = [(name, str(value)) for name, value in data.items()]
            elapsed = float(record["elapsedtime"]) if "elapsedtime" in record else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            return []
        epoch, step = _place(at)
        return report(self.name, pairs, step=step, epoch=epoch, elapsed_s=elapsed)


def _place(at: object) -> tuple[float | None, int | None]:
    """Return the epoch and the step that DLLogger was given: a step, or (epoch, step, step of the
    validation), where the last one counts."""
    if isinstance(at, int):
        return None, at if abs(at) < 2**63 else None
    if not isinstance(at, list) or not all(isinstance(part, int) for part in at):
        return None, None
    epoch = float(at[0]) if at and abs(at[0]) < 1e9 else None
    return epoch, at[-1] if len(at) > 1 and abs(at[-1]) < 2**63 else None
