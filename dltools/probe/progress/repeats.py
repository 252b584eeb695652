"""Points that a log shows twice: bars drawn again, programs that print each point twice, ranks."""

from __future__ import annotations

from dltools.probe.progress.base import Point
from dltools.probe.progress.log_lines import LogLine

_SILENT = 200
"""Points of other ranks after which a rank that says nothing more is no longer followed."""


class Repeats:
    """Drops the points of one log that were there before.

    A point with the step and the epoch of the one before is dropped if its line was drawn over that
    one, or if its value is the same too. A bar that moves on shows the old value until there is a
    new one: after each change of the value, the first such point is dropped. So is a point without
    step and epoch with the value of the one before: `saved the best model (loss 0.31)`.
    """

    def __init__(self) -> None:
        """No point has come yet."""
        self._last: dict[str, tuple[int | None, float | None, float]] = {}
        self._stale: dict[
            str, int | None
        ] = {}  # the step that shows an old value, None for none yet

    def is_new(self, point: Point, *, is_redrawn: bool) -> bool:
        """Tell whether a point was not there before, and remember it."""
        metric, value, step, epoch = point[:4]
        last = self._last.get(metric)
        if step is None:
            if epoch is not None:
                self._last[metric] = (None, epoch, value)
            return epoch is not None or last is None or last[2] != value
        is_same = last is not None and (last[2] == value or (last[2] != last[2] and value != value))
        if last is not None:
            if last[0] == step and (is_same or is_redrawn) and (is_redrawn or last[1] == epoch):
                if is_same or last[1] == epoch:
                    return False
            elif is_same and is_redrawn and self._stale.get(metric) in (None, step):
                self._stale[metric] = step
                return False
        if not is_same:
            self._stale[metric] = None
        self._last[metric] = (step, epoch, value)
        return True


class Ranks:
    """Follows one of several ranks that print the same metric: the first that does.

    A number before a colon may be a step as well: it is a rank if it comes back after another one,
    or if the rest of the line has a step or an epoch of its own.
    """

    def __init__(self) -> None:
        """No rank is known."""
        self._followed: dict[str, str] = {}
        self._others: dict[str, int] = {}
        self._numbers: set[str] = set()
        self._newest = ""
        self._are_ranks = False

    def follows(self, line: LogLine, point: Point) -> bool:
        """Tell whether a point is of the rank that is followed."""
        if not line.rank:
            return True
        if not line.is_certain and not self._is_rank(line.rank, point):
            return True
        metric = point.metric
        followed = self._followed.setdefault(metric, line.rank)
        if followed == line.rank:
            self._others[metric] = 0
            return True
        self._others[metric] = self._others.get(metric, 0) + 1
        if self._others[metric] > _SILENT:
            self._followed[metric], self._others[metric] = line.rank, 0
            return True
        return False

    def _is_rank(self, number: str, point: Point) -> bool:
        if number != self._newest:
            if number in self._numbers:
                self._are_ranks = True
            if len(self._numbers) < 4096:
                self._numbers.add(number)
            self._newest = number
        return self._are_ranks or point.step is not None or point.epoch is not None
