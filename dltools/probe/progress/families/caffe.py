"""Caffe: `Iteration 100, loss = 7.39`, `Train net output #0: loss = 87.3365 (...)`.

`loss` is Caffe's smoothed loss. The outputs of the nets are `train_` and `test_`, with the
iteration of the line above. Caffe prints divergence as 87.3365: -log of the smallest float.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_ITERATION = Regex(rf"\] Iteration (\d{{1,18}})(?: \(([^)]*)\))?, (?:loss = ({N})|Testing net)")
_TOOK = Regex(r" iter/s, (\d+(?:\.\d+)?(?:e[-+]\d+)?)s/")
_OUTPUT = Regex(rf"\]\s+(Train|Test) net output #\d+: ([\w/.-]+) = ({N})")


class Log:
    """A Caffe log. Time elapsed: the sum of the seconds since the last display, in versions that
    print them."""

    name: ClassVar[str] = "caffe"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("iteration ", "net output #")

    def __init__(self) -> None:
        self._step: int | None = None
        self._elapsed = 0.0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "] " not in line:
            return []
        if "Iteration " in line and (match := _ITERATION.search(line)):
            self._step = int(match[1])
            if match[2] and (took := _TOOK.search(match[2])):
                self._elapsed += float(took[1])
            pairs = [("loss", match[3])] if match[3] else []
            return report(self.name, pairs, step=self._step, elapsed_s=self._elapsed or None)
        if "net output #" in line and (match := _OUTPUT.search(line)):
            return report(
                self.name, [(match[2], match[3])], step=self._step, phase=match[1].lower()
            )
        return []
