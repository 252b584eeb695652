"""One metric of a container: its points, and its learning history.

Points may come late, twice, or out of order; values may be NaN or infinite. No data makes this
module raise.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import lt

from dltools.plan.signals.curves import Curve

LOST = 3
"""A metric is lost after this many reports in a row without a finite value (ours). One or two may
be steps that mixed precision skips, or an evaluation that failed."""

Columns = tuple[Sequence[int], Sequence[float], Sequence[int | None]]
"""Points of a metric: their times (microseconds), values and steps."""

_LONGEST = 128
"""Points of a learning history after thinning: at twice as many, every other one is dropped."""


@dataclass(slots=True)
class LearningHistory:
    """A whole run's learning curve in fewer than 256 points: `works` are CPU seconds, not falling.

    Every `stride`-th finite point is kept, so that the points stay spread evenly over the run.
    """

    works: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    stride: int = 1
    seen: int = 0
    last_step: int | None = None

    def extend(self, work_at: Callable[[int], float], points: Columns) -> None:
        """Add finite points. A step that falls to less than half shows that training began anew.

        `work_at` gives the CPU seconds at a time.
        """
        times, values, steps = points
        base, many = self.seen, len(times)
        at = -base % self.stride
        while at < many:
            step = steps[at]
            if step is not None and self.last_step is not None and step < self.last_step / 2:
                self.works, self.values, self.stride = [], [], 1
                base = -at
            self.last_step = step
            work = work_at(times[at])
            self.works.append(max(work, self.works[-1]) if self.works else work)
            self.values.append(values[at])
            if len(self.works) >= 2 * _LONGEST:
                del self.works[1::2], self.values[1::2]
                self.stride *= 2
            at += self.stride - (base + at) % self.stride
        self.seen = base + many


@dataclass(slots=True)
class Series:
    """Points of one metric in order of time: `times` (microseconds), `values`, `steps` (or None).

    `first` is the first finite value since the job started (None if unknown); `low` and `high` are
    the least and the greatest finite value; `count` is the number of points so far, including
    dropped ones. `not_finite`: how many of the newest points, up to `LOST`, are not finite.
    `learning` is kept if a policy needs curves; `curve` is its last fit (None: too few points),
    made when `fitted` points had been seen.
    """

    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    first: float | None = None
    low: float = math.inf
    high: float = -math.inf
    count: int = 0
    not_finite: int = 0
    learning: LearningHistory | None = None
    curve: Curve | None = None
    fitted: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for columns of unequal length."""
        if not len(self.times) == len(self.values) == len(self.steps):
            raise ValueError("a metric's columns are of unequal length")

    @property
    def peak(self) -> float:
        """The largest finite absolute value, 0 where there is none."""
        return max(self.high, -self.low, 0.0)

    @property
    def is_lost(self) -> bool:
        """Whether its newest `LOST` points are all not finite."""
        return self.not_finite >= LOST

    def add(self, time: int, value: float, step: int | None) -> bool:
        """Insert a point, unless it is there already; tell whether it was new."""
        at = bisect.bisect_right(self.times, time)
        twin = at
        while twin > 0 and self.times[twin - 1] == time:
            twin -= 1
            if self.steps[twin] == step and repr(self.values[twin]) == repr(value):
                return False
        after = len(self.times) - at
        self.times.insert(at, time)
        self.values.insert(at, value)
        self.steps.insert(at, step)
        if math.isfinite(value):
            self._note_finite([value])
            self.not_finite = min(self.not_finite, after)
        elif after <= self.not_finite:
            self.not_finite = min(self.not_finite + 1, LOST)
        return True

    def extend(self, points: Columns) -> Sequence[int]:
        """Insert points, which are in order of time. Return the indices of the new ones."""
        times, values, steps = points
        is_rising = all(map(lt, times, islice(times, 1, None)))
        if not is_rising or (self.times and times[0] <= self.times[-1]):
            rows = enumerate(zip(times, values, steps, strict=True))
            return [number for number, point in rows if self.add(*point)]
        if math.isfinite(sum(values)):
            self._note_finite(values)
            self.not_finite = 0
        else:
            self._note_finite([value for value in values if math.isfinite(value)])
            newest = list(takewhile(lambda value: not math.isfinite(value), reversed(values)))
            before = self.not_finite if len(newest) == len(values) else 0
            self.not_finite = min(before + len(newest), LOST)
        self.times += times
        self.values += values
        self.steps += steps
        return range(len(times))

    def _note_finite(self, values: Sequence[float]) -> None:
        if not values:
            return
        if self.count == 0:
            self.first = values[0]
        self.low, self.high = min(self.low, min(values)), max(self.high, max(values))
        self.count += len(values)

    def window(self, after: int, until: int) -> list[float]:
        """Return the values with `after` < time <= `until`."""
        low = bisect.bisect_right(self.times, after)
        return self.values[low : bisect.bisect_right(self.times, until)]

    def forget(self, until: int) -> None:
        """Drop the points with time <= `until`, except the newest one. `first`, `low`, `high` and
        `count` still include them."""
        low = min(bisect.bisect_right(self.times, until), len(self.times) - 1)
        if low > 0:
            del self.times[:low], self.values[:low], self.steps[:low]

    def forget_learning(self) -> None:
        """Drop the learning history and its fit, because the unit of effort has changed."""
        self.learning, self.curve, self.fitted = None, None, 0
