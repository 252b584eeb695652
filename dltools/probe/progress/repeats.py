"""Drops points that a log shows twice: redrawn bars, programs that print each point twice. It is
the fifth step of the pipeline.
"""

from __future__ import annotations

from dltools.probe.progress.base import Point

_Seen = tuple[int | None, float | None, float | None]
"""A point's step, epoch and value."""

_MOST = 2**63
"""Steps from here on do not fit into a column: such a point has no step."""


class Repeats:
    """Drops the repeated points of one log.

    A point with the same step and epoch as the point before is dropped if its line was drawn over
    that one, or if its value is the same too. A bar may move on before its value changes: after
    each change of the value, the first point with the old value is dropped. A point without step
    and epoch is dropped if its value is that of the point before: `saved the best model (loss
    0.31)`.
    """

    def __init__(self) -> None:
        self._last: dict[str, _Seen] = {}
        self._stale: dict[str, int] = {}  # the step that shows an old value

    def new(self, points: list[Point], *, is_redrawn: bool) -> list[Point]:
        """Return the new points of a line, and remember them."""
        found = []
        are_stale = is_redrawn or bool(self._stale)
        for point in points:
            metric, value, step, epoch = point[:4]
            last = self._last.get(metric)
            if step is None and epoch is None:
                if last is None or last[2] != value:
                    found.append(point)
                continue
            if last and step and last[0] != step and 0 < step < _MOST and not are_stale:
                self._last[metric] = (step, epoch, value)
                found.append(point)
                continue
            if step is not None and not -_MOST <= step < _MOST:
                step, point = None, point._replace(step=None)
            if self._is_new(metric, (step, epoch, value), is_redrawn=is_redrawn):
                found.append(point)
        return found

    def _is_new(self, metric: str, now: _Seen, *, is_redrawn: bool) -> bool:
        """Tell whether a point was not there before, and remember it."""
        step, epoch, value = now
        last = self._last.get(metric)
        if last is None or step is None:
            self._last[metric] = now
            return True
        before = last[2]
        is_same = before == value or (before != before and value != value)
        if last[0] == step and (is_same or is_redrawn) and (is_redrawn or last[1] == epoch):
            if is_same or last[1] == epoch:
                return False
        elif is_same and is_redrawn and self._stale.get(metric) in (None, step):
            self._stale[metric] = step
            return False
        if not is_same:
            self._stale.pop(metric, None)
        self._last[metric] = now
        return True
