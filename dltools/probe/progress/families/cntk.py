"""CNTK: `Finished Epoch[1 of 10]: [Training] loss = 2.3 * 50000, metric = 85.0% * 50000 12.3s`.

Its `metric` is a share of errors: `error`.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_EPOCH = Regex(
    rf"Finished Epoch\[\s*(\d+)(?: of \d+)?\]: (?:\[(Training|Validation)\] )?loss = ({N})"
    rf"(?: \* \d+)?(?:, metric = ({N})%(?: \* \d+)?)?(?: ({N})s)?"
)
_BATCH = Regex(
    rf"Minibatch\[\s*\d+-\s*(\d+)(?:, [\d.]+%)?\]: loss = ({N})(?: \* \d+)?(?:, metric = ({N})%)?"
)


class Log:
    """A CNTK log. Time elapsed: the sum of the epochs."""

    name: ClassVar[str] = "cntk"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("loss = ",)

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._epoch = 1.0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "loss = " not in line:
            return []
        if match := _EPOCH.search(line):
            self._epoch = float(match[1]) + 1
            if match[5]:
                self._elapsed += float(match[5])
            return report(
                self.name,
                _pairs(match[3], match[4]),
                epoch=float(match[1]),
                phase="val" if match[2] == "Validation" else "train",
                elapsed_s=self._elapsed or None,
            )
        if match := _BATCH.search(line):
            return report(
                self.name, _pairs(match[2], match[3]), step=int(match[1]), epoch=self._epoch
            )
        return []


def _pairs(loss: str, errors: str | None) -> list[tuple[str, float]]:
    return [("loss", float(loss)), *([("error", float(errors) / 100)] if errors else [])]
