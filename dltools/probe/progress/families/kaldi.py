"""Kaldi: `Average objective function for 'output' for minibatches 40-49 is -35.0 over ... frames`.

The metric is `objective`; larger is better.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_OBJECTIVE = Regex(
    r"(Average|Overall average) objective function for '([\w-]+)'"
    rf"(?: for minibatches \d+-(\d+))? is ({N})"
    rf"(?: \+ {N} = ({N}))? over"
)
_NNET1 = Regex(rf"\bAvgLoss: ({N})")
_ACCURACY = Regex(rf"FRAME_ACCURACY >> ({N})%")


class Log:
    """A Kaldi log."""

    name: ClassVar[str] = "kaldi"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = (
        "objective function for '",
        "avgloss: ",
        "frame_accuracy >> ",
    )

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "objective function for '" in line and (match := _OBJECTIVE.search(line)):
            metric = "objective" if match[2] == "output" else f"objective_{match[2]}"
            if match[1] != "Average":
                metric = f"overall_{metric}"
            step = int(match[3]) if match[3] else None
            return report(self.name, [(metric, match[5] or match[4])], step=step)
        if "AvgLoss: " in line and (match := _NNET1.search(line)):
            return report(self.name, [("AvgLoss", match[1])])
        if "FRAME_ACCURACY >> " in line and (match := _ACCURACY.search(line)):
            return report(self.name, [("FRAME_ACCURACY", match[1])])
        return []
