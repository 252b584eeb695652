"""Holds doubtful points back until a similar one follows; the last step of the pipeline.

A line of settings, of source code or of debug text may look like a point, but it comes only once.
The lines of a training come again. So a doubtful point waits until a line with the same metrics and
another value follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dltools.probe.progress.base import Point, Reading

T = TypeVar("T")
"""The tag that the reader of a log gives to a line, such as its time."""

_AGAIN = 2
"""Number of lines of one form that make a series if their values differ."""

_SAME_AGAIN = 4
"""Number of lines of one form that make a series if their values are the same."""

_MOST_FORMS = 1_000
_MOST_WAITING = 4_096
_PHASES = ("val_", "test_", "eval_")

_Form = tuple[tuple[str, bool], ...]
"""The metrics of a line, each with whether its value is a whole number."""

Tagged = tuple[T, Point]
"""A point, behind the tag of its line."""


@dataclass(slots=True)
class _Seen(Generic[T]):
    """The lines of one form."""

    count: int = 0
    is_series: bool = False
    differs: bool = False
    values: tuple[float, ...] = ()
    waiting: list[Tagged[T]] = field(default_factory=list)


class Confirmation(Generic[T]):
    """Keeps the doubtful points of one log until others like them come."""

    def __init__(self) -> None:
        """Start without waiting points."""
        self._seen: dict[_Form, _Seen[T]] = {}
        self._waiting = 0
        self._has_points = self._has_rivals = False
        self._sure: dict[str, int | None] = {}  # the newest step of each metric that is certain
        self._series: set[tuple[str, ...]] = set()
        self._lost: dict[str, int] = {}

    def confirmed(self, points: list[Point], reading: Reading, tag: T) -> list[Tagged[T]]:
        """Return the points that are certain now, earlier ones first. `points`: the new points of a
        reading."""
        now = [(tag, point) for point in points]
        if reading.is_sure:
            self._has_points = True
            for point in points:
                self._sure[point[0]] = point[2]
            return self._released(points) + now if self._waiting and reading.has_fraction else now
        self._has_rivals = self._has_rivals or reading.rivals > 0
        names = tuple(point.metric for point in points)
        is_known = (len(names) > 1 or reading.has_fraction) and names in self._series
        is_known = is_known or all(self._is_known(point) for point in points)
        if is_known and not reading.rivals:
            return now
        seen = self._see(points)
        if seen is None:
            return []
        if not seen.is_series:
            needed = _AGAIN if seen.differs else _SAME_AGAIN
            if seen.count < needed + reading.rivals:
                self._keep(seen, now)
                return []
            seen.is_series = True
            self._series.add(names)
            self._sure.update((point.metric, point.step) for point in points)
        now = [*seen.waiting, *now]
        self._waiting -= len(seen.waiting)
        seen.waiting = []
        self._has_points = True
        return now

    def end(self) -> list[Tagged[T]]:
        """Return the waiting points that count at the end of a log.

        Without another series all of them count. Otherwise, if no family of formats knows the log,
        only results of an evaluation count: metrics of a phase with a fraction, such as
        `Test accuracy: 0.91`.
        """
        found = []
        for seen in self._seen.values():
            waiting, seen.waiting = seen.waiting, []
            for one in waiting:
                metric = one[1].metric
                if not self._has_points or self._is_result(one[1]):
                    found.append(one)
                else:
                    self._lost[metric] = self._lost.get(metric, 0) + 1
        self._waiting = 0
        return found

    def dropped(self) -> dict[str, int]:
        """Return by metric how many points still wait, or did not count at the end."""
        found = dict(self._lost)
        for seen in self._seen.values():
            for _, point in seen.waiting:
                found[point.metric] = found.get(point.metric, 0) + 1
        return found

    def _released(self, points: list[Point]) -> list[Tagged[T]]:
        """Return the waiting points of the same form as these, which are certain."""
        seen = self._seen.get(_form_of(points))
        if seen is None or seen.values == tuple(point.value for point in points):
            return []
        waiting, seen.waiting, seen.is_series = seen.waiting, [], True
        self._waiting -= len(waiting)
        return waiting

    def _see(self, points: list[Point]) -> _Seen[T] | None:
        form = _form_of(points)
        seen = self._seen.get(form)
        if seen is None:
            if len(self._seen) >= _MOST_FORMS:
                return None
            seen = self._seen[form] = _Seen()
        values = tuple(point.value for point in points)
        seen.differs = seen.differs or (seen.count > 0 and values != seen.values)
        seen.count, seen.values = seen.count + 1, values
        return seen

    def _keep(self, seen: _Seen[T], points: list[Tagged[T]]) -> None:
        if self._waiting + len(points) <= _MOST_WAITING:
            seen.waiting += points
            self._waiting += len(points)

    def _is_known(self, point: Point) -> bool:
        """Tell whether a point continues a certain series. A whole number does so only with a later
        step."""
        if point.metric not in self._sure:
            return False
        newest = self._sure[point.metric]
        is_later = newest is not None and point.step is not None and point.step > newest
        return is_later or not point.value.is_integer()

    def _is_result(self, point: Point) -> bool:
        return (
            not self._has_rivals
            and point.metric.startswith(_PHASES)
            and not point.value.is_integer()
            and point.metric not in self._sure
        )


def _form_of(points: list[Point]) -> _Form:
    return tuple((point.metric, point.value.is_integer()) for point in points)
