"""Drops points that a log shows twice: redrawn bars, programs that print each point twice. They are
the fifth and the last step of the pipeline.
"""

from __future__ import annotations

import math
from typing import Generic

from dltools.observations.metric_names import EVALUATED
from dltools.probe.progress.base import Point
from dltools.probe.progress.clean_lines import LogLine
from dltools.probe.progress.confirm import T, Tagged
from dltools.probe.progress.named import BAR

HISTORY = "flower"
"""The source of a history, which may say again what came before."""

_LONG, _LONG_OF_EVALUATION = 8, 6
"""Characters of a value that no two passes, or two evaluations, of an epoch give alike."""


_DECIMALS = 3
"""Decimals from which a value that is another one rounded is that one."""


class Repeats:
    """Drops the repeated points of one log.

    A point with the step, the epoch and the value of the point before is dropped, where it has an
    epoch only if the value is long: other processes of the training say it too. So is a point
    without step and epoch if its value is that of a point that had one: `saved the best model (loss
    0.31)`.
    """

    def __init__(self) -> None:
        self._last: dict[str, Point] = {}  # by metric, of points with a step or an epoch

    def new(self, points: list[Point], *, is_redrawn: bool) -> list[Point]:
        """Return the new points of a line, and remember them."""
        fresh = []
        for point in points:
            metric, _, step, epoch = point[:4]
            before = self._last.get(metric)
            if point.source == HISTORY and before is not None and _is_told(point, before):
                continue
            if step is not None or epoch is not None:
                self._last[metric] = point
            if before is None or not _is_repeated(point, before, is_redrawn=is_redrawn):
                fresh.append(point)
        return fresh


def _is_told(point: Point, before: Point) -> bool:
    """Tell whether a history says again what came round by round, or by the clients."""
    return before.source != HISTORY or (point.step or 0) <= (before.step or 0)


def _is_repeated(point: Point, before: Point, *, is_redrawn: bool) -> bool:
    """Tell whether a point says again what the one before it of its metric said."""
    metric, value, step, epoch = point[:4]
    if value == value != before.value:
        is_place_same = epoch in (None, before.epoch) and (
            step is None
            or step <= (before.step or 0)
            or (before.source == BAR and metric.startswith(EVALUATED))
        )
        return is_place_same and _is_rounded(value, before.value)
    if value != value and not math.isnan(before.value):
        return False
    if step is None and epoch is None:
        return True
    is_evaluation = metric.startswith(EVALUATED)
    if is_evaluation and point.source == BAR and epoch is not None and epoch == before.epoch:
        return True
    least = _LONG_OF_EVALUATION if is_evaluation else _LONG
    is_same = step == before.step if step is not None else len(repr(value)) >= least
    return is_same and (is_redrawn or epoch == before.epoch)


def _is_rounded(value: float, other: float) -> bool:
    """Tell whether one of two values with some decimals is the other, rounded, perhaps twice."""
    fewer, more = sorted(len(repr(number).partition(".")[2]) for number in (value, other))
    least = 0.5001 * (10.0**-fewer + 10.0**-more)
    return _DECIMALS <= fewer < more and abs(value - other) <= least


class Drawings(Generic[T]):
    """Holds the points of a bar back until it is drawn again: the last drawing of a step counts,
    because a bar may move on before its values do, and the mean of an epoch is drawn at its end."""

    def __init__(self) -> None:
        self.held: list[Tagged[T]] = []

    def settled(
        self,
        points: list[Tagged[T]],
        line: LogLine,
        *,
        waits: bool = False,
        shown: int | None = None,
    ) -> list[Tagged[T]]:
        """Return the points that no later drawing replaces, of those held and of a line's, which
        `waits` for one; `shown` is the step of those held, where the line says it."""
        held = self.end()
        if shown is not None:
            held = [(tag, point._replace(step=shown)) for tag, point in held]
        if line.is_redrawn or line.is_drawn_over or waits:
            drawn = {_place(point) for _, point in points if point.step is not None}
            self.held = points
            return [tagged for tagged in held if _place(tagged[1]) not in drawn]
        return held + points

    def end(self) -> list[Tagged[T]]:
        """Return the points that are held back."""
        held, self.held = self.held, []
        return held


def _place(point: Point) -> tuple[str, int | None, float | None]:
    return point.metric, point.step, point.epoch
