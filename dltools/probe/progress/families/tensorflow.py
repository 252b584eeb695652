"""TensorFlow 1: hooks, Estimator, benchmarks: `step = 101, loss = 2.00101 (2.943 sec)`.

Slim prints `global step 100: loss = 1.23 (0.456 sec/step)`, the CIFAR-10 tutorial nearly the
same.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_PAIR = Regex(rf"\b([A-Za-z_][\w/.-]{{0,99}}) = ({N})(?=[,\s(.]|$)")
_SECONDS = Regex(r"\((\d+\.\d+) sec\)\s*$")
_EVAL = Regex(r"Saving dict for global step (\d{1,18}): ")
_STEP = Regex(r"\b(?:global_)?step = (\d{1,18})\b")
_PLAIN_STEP = Regex(
    rf"\b(?:global )?step (\d{{1,18}})[,:] loss = ({N}) \([^()]*\bsec/(?:step|batch)\)"
)
_FINAL = Regex(rf"Loss for final step: ({N})\.?\s*$")
_BENCH = Regex(
    r"(?:^|\s)(\d{1,18})\timages/sec: [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\)"
    rf"\t({N})(?:\t({N})\t({N}))?"
)


class Log:
    """A TensorFlow 1 log. Time elapsed: the sum of the seconds of the hook that prints the step."""

    name: ClassVar[str] = "tensorflow"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("images/sec: ", "saving dict", "oss")

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._step: int | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "images/sec: " in line and (match := _BENCH.search(line)):
            pairs = [("total_loss", match[2])]
            if match[3]:
                pairs += [("top_1_accuracy", match[3]), ("top_5_accuracy", match[4])]
            return report(self.name, pairs, step=int(match[1]))
        if "Saving dict" in line and (match := _EVAL.search(line)):
            pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.end())]
            return report(
                self.name, pairs, step=int(match[1]), phase="val", elapsed_s=self._elapsed or None
            )
        if "oss" not in line or (" = " not in line and "final step" not in line):
            return []
        if "final step" in line and (match := _FINAL.search(line)):
            return report(
                self.name, [("loss", match[1])], step=self._step, elapsed_s=self._elapsed or None
            )
        if "sec/" in line and (match := _PLAIN_STEP.search(line)):
            self._step = int(match[1])
            return report(self.name, [("loss", match[2])], step=self._step)
        if "tensorflow" not in line and "basic_session" not in line and " sec)" not in line:
            return []
        if (match := _STEP.search(line)) is None and "loss = " not in line:
            return []
        step = int(match[1]) if match else None
        if match:  # a hook without the step, beside it, times the same steps again
            self._step = step
            if took := _SECONDS.search(line):
                self._elapsed += float(took[1])
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(line)]
        found = report(self.name, pairs, step=step, elapsed_s=self._elapsed if match else None)
        return found if any("loss" in point.metric for point in found) else []
