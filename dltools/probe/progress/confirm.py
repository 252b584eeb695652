"""Holds doubtful points back until a similar one follows; the sixth step of the pipeline.

A line of settings, of source code or of debug text may look like a point, but it comes only once.
The lines of a training come again. So a doubtful point waits until a line with the same metrics and
another value follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from dltools.observations.metric_names import EVALUATED
from dltools.probe.progress.base import Point
from dltools.probe.progress.line_shapes import Reading

T = TypeVar("T")
"""The tag that the reader of a log gives to a line, such as its time."""

_AGAIN = 2
"""Number of lines of one form that make a series if their values differ."""

_SAME_AGAIN = 4
"""Number of lines of one form that make a series if their values are the same."""

_WHOLES = 3
"""Number of different values that make a series of whole numbers without a counter: fewer are the
lines of a program's source, or the classes of a model."""

_MOST_FORMS = 1_000
_MOST_WAITING = 4_096

_Names = tuple[str, ...]
"""The metrics of a line. Lines that print the same of them as whole numbers have one form."""

Tagged = tuple[T, Point]
"""A point, behind the tag of its line."""


@dataclass(slots=True)
class _Seen:
    """The lines of one form."""

    count: int = 0
    is_series: bool = False
    values: set[tuple[float, ...]] = field(default_factory=set)
    """The different ones, at most `_WHOLES` of them."""

    def is_enough(self, *, is_plain: bool) -> bool:
        """Tell whether these lines make a series. `is_plain`: they have whole numbers only, and no
        counter."""
        if is_plain and len(self.values) < _WHOLES:
            return False
        return self.count >= (_AGAIN if len(self.values) > 1 else _SAME_AGAIN)


class _Waiting(NamedTuple, Generic[T]):
    """A doubtful point. `is_whole`: its number is printed without a fraction; `is_setting`: it may
    stand in a printed configuration."""

    tagged: Tagged[T]
    is_whole: bool
    is_setting: bool


class Confirmation(Generic[T]):
    """Keeps the doubtful points of one log until others like them come."""

    def __init__(self) -> None:
        """Start without waiting points."""
        self._seen: dict[tuple[_Names, frozenset[str]], _Seen] = {}
        self._waiting: dict[_Names, list[_Waiting[T]]] = {}
        self._waits = 0
        self._has_points = False
        self._sure: dict[str, Point] = {}  # the newest point of each metric that is certain
        self._series: set[_Names] = set()
        self._lost: dict[str, int] = {}

    def confirmed(self, points: list[Point], reading: Reading, tag: T) -> list[Tagged[T]]:
        """Return the points that are certain now, earlier ones first. `points`: the new points of a
        reading."""
        if reading.is_rivalled:
            points = [point for point in points if not self._is_of_family(point.metric)]
        now = [(tag, point) for point in points]
        if not points:
            return []
        if reading.is_sure and not reading.meaning.is_final:
            self._has_points = True
            for point in points:
                self._sure[point[0]] = point
            if self._waits and reading.meaning.has_fraction:
                names = tuple([point[0] for point in points])
                return self._released(names, reading) + now
            return now
        names = tuple([point[0] for point in points])
        if reading.meaning.is_final:
            names = ("final", *names)
            is_known = all(point.metric in self._sure for point in points)
            if is_known and names not in self._series:
                return []
        is_known = (len(names) > 1 or reading.meaning.has_fraction) and names in self._series
        if is_known or all(self._is_known(point, reading) for point in points):
            return now
        seen = self._see(points, reading)
        if seen is None:
            return []
        if not seen.is_series:
            has_count = points[0].step is not None or points[0].epoch is not None
            is_plain = len(reading.meaning.wholes) == len(names) and not has_count
            if not seen.is_enough(is_plain=is_plain):
                self._keep(names, now, reading)
                return []
            seen.is_series = True
            self._series.add(names)
            self._sure.update((point.metric, point) for point in points)
        self._has_points = True
        return self._released(names, reading) + now

    def end(self, *, has_more: bool = False) -> list[Tagged[T]]:
        """Return the waiting points that count at the end of a log; if it `has_more`, whole numbers
        wait no longer, but do not count.

        Without another series all of them count, but for indented ones. Otherwise only results of
        an evaluation count: metrics of a phase with a fraction, such as `Test accuracy: 0.91`.
        """
        tagged = []
        waiting, self._waiting, self._waits = self._waiting, {}, 0
        for entry in (entry for of in waiting.values() for entry in of):
            point = entry.tagged[1]
            if (not self._has_points and not entry.is_setting) or self._is_result(entry):
                tagged += [] if has_more and entry.is_whole else [entry.tagged]
            else:
                self._lost[point.metric] = self._lost.get(point.metric, 0) + 1
        return tagged

    def dropped(self) -> dict[str, int]:
        """Return by metric how many points still wait, or did not count at the end."""
        counts = dict(self._lost)
        for entry in (waiting for of in self._waiting.values() for waiting in of):
            metric = entry.tagged[1].metric
            counts[metric] = counts.get(metric, 0) + 1
        return counts

    def _released(self, names: _Names, reading: Reading) -> list[Tagged[T]]:
        """Return the waiting points with names that are certain. A whole number
        beside fractions still waits if it has no counter: it may be a setting."""
        if names not in self._waiting:
            return []
        certain: list[_Waiting[T]] = []
        kept: list[_Waiting[T]] = []
        for waiting in self._waiting.pop(names):
            metric, _, step, epoch = waiting.tagged[1][:4]
            is_doubtful = waiting.is_whole and metric not in reading.meaning.wholes
            may_be_setting = is_doubtful and step is None and epoch is None
            (kept if may_be_setting else certain).append(waiting)
        if kept:
            self._waiting[names] = kept
        self._waits -= len(certain)
        return [waiting.tagged for waiting in certain]

    def _see(self, points: list[Point], reading: Reading) -> _Seen | None:
        form = tuple([point.metric for point in points]), reading.meaning.wholes
        seen = self._seen.get(form)
        if seen is None:
            if len(self._seen) >= _MOST_FORMS:
                return None
            seen = self._seen[form] = _Seen()
        seen.count += 1
        if len(seen.values) < _WHOLES:
            seen.values.add(tuple([point.value for point in points]))
        return seen

    def _keep(self, names: _Names, points: list[Tagged[T]], reading: Reading) -> None:
        if self._waits + len(points) <= _MOST_WAITING:
            kept = self._waiting.setdefault(names, [])
            for point in points:
                metric, _, step, epoch = point[1][:4]
                is_setting = reading.meaning.is_indented and step is None and epoch is None
                kept.append(_Waiting(point, metric in reading.meaning.wholes, is_setting))
            self._waits += len(points)

    def _is_of_family(self, metric: str) -> bool:
        """Tell whether a metric's newest point is that of a family, which knows the log better."""
        return metric in self._sure and self._sure[metric].source != "named"

    def _is_known(self, point: Point, reading: Reading) -> bool:
        """Tell whether a point continues a certain series. A whole number does so only with a later
        step or epoch."""
        newest = self._sure.get(point.metric)
        if newest is None:
            return False
        is_later = _is_after(point.step, newest.step) or _is_after(point.epoch, newest.epoch)
        return is_later or point.metric not in reading.meaning.wholes

    def _is_result(self, waiting: _Waiting[T]) -> bool:
        metric = waiting.tagged[1].metric
        is_evaluation = (
            metric.startswith(EVALUATED) and "_std" not in metric and not waiting.is_whole
        )
        return is_evaluation and metric not in self._sure


def _is_after(counter: float | None, other: float | None) -> bool:
    return counter is not None and other is not None and counter > other
