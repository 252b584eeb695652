"""Megatron-LM: ` iteration  20/ 1000 | ... | lm loss: 1.07E+01 | loss scale: 131072.0 | ...`."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report

_ITERATION = Regex(r"\biteration\s+(\d+)/\s*\d+ \|")
_PART = Regex(rf"\|\s*([A-Za-z][\w ./-]*?)(?: \(ms\))?:\s*({PLAIN_NUMBER})\s*(?=\||$)")
_TOOK = Regex(r"elapsed time per iteration \((ms|s)\):\s*([\d.]+)")
_VALIDATION = Regex(r"\bvalidation loss at (?:iteration (\d+)|the end of training)([^|]*)\|")
_VALUE = Regex(rf"\|\s*(\w[\w ]{{0,99}}?) (value|PPL):\s*({PLAIN_NUMBER})")


class Log:
    """A Megatron log. Time elapsed: the sum of the iterations."""

    name: ClassVar[str] = "megatron"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("iteration", "validation loss at")

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._step = 0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "iteration" not in line or "|" not in line:
            if "validation loss at the end" not in line:
                return []
        elif "consumed" in line or "elapsed time per iteration" in line:
            if match := _ITERATION.search(line):
                return self._training(line, match.end() - 1, int(match[1]))
            return []
        if (match := _VALIDATION.search(line)) is None:
            return []
        phase = "test" if "test" in match[2] else "val"
        pairs = [
            (m[1] if m[2] == "value" else f"{m[1]} PPL", m[3])
            for m in _VALUE.finditer(line, match.end() - 1)
        ]
        step = int(match[1]) if match[1] else self._step
        return report(self.name, pairs, step=step, phase=phase, elapsed_s=self._elapsed or None)

    def _training(self, line: str, start: int, step: int) -> list[Point]:
        if took := _TOOK.search(line):
            each = float(took[2]) / (1000 if took[1] == "ms" else 1)
            self._elapsed += max(1, step - self._step) * each
        self._step = step
        pairs = [(m[1], m[2]) for m in _PART.finditer(line, start)]
        wanted = [p for p in pairs if "loss" in p[0] or p[0] in ("grad norm", "params norm")]
        wanted = [p for p in wanted if p[0] != "params norm"]
        return report(self.name, wanted, step=step, elapsed_s=self._elapsed or None)
