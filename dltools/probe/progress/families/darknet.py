"""Darknet: ` 5045: 0.872799, 0.996185 avg loss, 0.000261 rate, 0.466129 seconds, 242160 images`."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_LINE = Regex(
    rf"(?:^|\s)(\d{{1,18}}): ({N}), ({N}) avg(?: loss)?, {N} rate, ({N}) seconds, \d+ images"
)
_MAP = Regex(rf"mean average precision \(mAP@([\d.]+)\) = ({N})")


class Log:
    """A Darknet log: `loss` is of the batch, `avg_loss` the running mean. Time: the sum."""

    name: ClassVar[str] = "darknet"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = (" avg", "map@")

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._step: int | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if " avg" in line and (match := _LINE.search(line)):
            self._step = int(match[1])
            self._elapsed += float(match[4])
            return report(
                self.name,
                [("loss", match[2]), ("avg_loss", match[3])],
                step=self._step,
                elapsed_s=self._elapsed,
            )
        if "mAP@" in line and (match := _MAP.search(line)):
            return report(
                self.name,
                [("mAP", match[2])],
                step=self._step,
                phase="val",
                elapsed_s=self._elapsed or None,
            )
        return []
