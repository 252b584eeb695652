"""Drops points that a log shows twice: redrawn bars, programs that print each point twice. They are
the fifth and the last step of the pipeline.
"""

from __future__ import annotations

import math
from typing import Generic

from dltools.probe.progress.base import Point
from dltools.probe.progress.confirm import T, Tagged
from dltools.probe.progress.lines import LogLine

_Seen = tuple[int | None, float | None, float]
"""A point's step, epoch and value."""

_MOST = 2**63
"""Steps from here on do not fit into a column: such a point has no step."""

_LONG = 8
"""Characters of a value that no two passes of an epoch give alike."""

_SAID_AGAIN = 1e-5
"""Relative difference of a value without a step that is said again with fewer digits."""

BARS = ("bars",)
"""Sources of bars. Where a log is no terminal, each drawing may have a line of its own."""


class Repeats:
    """Drops the repeated points of one log.

    A point with the step, the epoch and the value of the point before is dropped, where it has an
    epoch only if the value is long: other processes of the training say it too. So is a point
    without step and epoch if its value is that of a point that had one: `saved the best model (loss
    0.31)`.
    """

    def __init__(self) -> None:
        self._last: dict[str, _Seen] = {}  # by metric, of points with a step or an epoch

    def new(self, points: list[Point], *, is_redrawn: bool) -> list[Point]:
        """Return the new points of a line, and remember them."""
        found = []
        for point in points:
            metric, value, step, epoch = point[:4]
            if step is not None and not -_MOST <= step < _MOST:
                step, point = None, point._replace(step=None)
            last = self._last.get(metric)
            is_same = last is not None and (
                last[2] == value or (value != value and last[2] != last[2])
            )
            if step is not None or epoch is not None:
                self._last[metric] = (step, epoch, value)
                if last is not None and is_same:
                    is_same = step in (last[0], None) and (
                        step is not None or len(repr(value)) >= _LONG
                    )
                    is_same = is_same and (is_redrawn or last[1] == epoch)
                elif step is None and last is not None and last[:2] == (None, epoch):
                    is_same = math.isclose(last[2], value, rel_tol=_SAID_AGAIN)
            if not is_same:
                found.append(point)
        return found


class Drawings(Generic[T]):
    """Holds the points of a bar back until it is drawn again: the last drawing of a step counts,
    because a bar may move on before its values do, and the mean of an epoch is drawn at its end."""

    def __init__(self) -> None:
        self.held: list[Tagged[T]] = []

    def settled(self, points: list[Tagged[T]], line: LogLine) -> list[Tagged[T]]:
        """Return the points that no later drawing replaces, of those held and of a line's."""
        held = self.end()
        if line.is_redrawn or line.is_drawn_over or (points and points[-1][1].source in BARS):
            drawn = {_place(point) for _, point in points if point.step is not None}
            self.held = points
            return [one for one in held if _place(one[1]) not in drawn]
        return held + points

    def end(self) -> list[Tagged[T]]:
        """Return the points that are held back."""
        found, self.held = self.held, []
        return found


def _place(point: Point) -> tuple[str, int | None, float | None]:
    return point.metric, point.step, point.epoch
