"""What a job has reported, and how far it has come.

Points may come late, twice, or out of order; values may be NaN or infinite. No data makes this
module raise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dltools.observations.targets import NONE, STEP, Length, Targets, lengths
from dltools.plan.signals.effort import EpochCost
from dltools.plan.signals.metric_series import Columns, LearningHistory, Series
from dltools.plan.signals.paces import Pace
from dltools.plan.signals.resource_use import Use


@dataclass(slots=True)
class Progress:
    """The progress of one run of a job. Times are microseconds.

    `targets`: what its labels ask for. `metrics`: the points of each metric, by its name;
    `met_first` and `met_final`: the times of the first points that met its targets. `epoch` and
    `step`: its newest; `epoch_count` and `step_count`: how many it says that it will train;
    `epoch_cost`: the effort that each takes, if a label or the job says how many there are.
    `reports`: how many different times its points have, up to 2; `has_news`: the second was after
    the last round. `pace`: its progress per CPU second, None while not tracked.
    """

    targets: Targets = NONE
    metrics: dict[str, Series] = field(default_factory=dict)
    met_first: int | None = None
    met_final: int | None = None
    epoch: float | None = None
    step: int | None = None
    epoch_count: int | None = None
    step_count: int | None = None
    epoch_cost: EpochCost | None = None
    reports: int = 0
    has_news: bool = False
    pace: Pace | None = None

    @property
    def is_counted(self) -> bool:
        """Whether a point came with a step or an epoch."""
        return self.step is not None or self.epoch is not None

    @property
    def length(self) -> Length | None:
        """How long it will train, None if neither its labels nor its log say so."""
        return next(iter(self.targets.lengths or self.said_lengths), None)

    @property
    def said_lengths(self) -> tuple[Length, ...]:
        """How long it says itself that it will train."""
        return lengths(self.epoch_count, self.step_count)

    def position(self, unit: str) -> float | None:
        """Return its newest epoch or step, as the unit says."""
        return self.step if unit == STEP else self.epoch

    def add(self, metric: str, points: Columns, use: Use, *, curves: bool) -> None:
        """Remember progress points, at least one, in order of time; with `curves` for the learning
        curve too. `use`: what the job has used by then."""
        times, values, steps = points
        self._count_reports(times)
        series = self.metrics.setdefault(metric, Series())
        new = series.extend(points)
        if self.pace is not None and self.pace.metric == metric:
            self.pace = self.pace.reported(times, steps, use.paced_at)
        if metric == self.targets.metric and self.targets.first is not None:
            self._meet(times, values)
        if not curves:
            return
        learning = series.learning = series.learning or LearningHistory()
        since = use.effort_since
        if len(new) < len(times) or times[0] <= since or not all(map(math.isfinite, values)):
            kept = [i for i in new if math.isfinite(values[i]) and times[i] > since]
            points = [times[i] for i in kept], [values[i] for i in kept], [steps[i] for i in kept]
        learning.extend(use.effort_at, points)

    def _count_reports(self, times: Sequence[int]) -> None:
        if self.reports < 2:
            earliest = {time for series in self.metrics.values() for time in series.times[:2]}
            self.reports = min(2, len(earliest.union(times[:1], times[-1:])))
            self.has_news = self.reports == 2

    def _meet(self, times: Sequence[int], values: Sequence[float]) -> None:
        targets = self.targets
        for target, name in ((targets.first, "met_first"), (targets.final, "met_final")):
            if target is None or getattr(self, name) is not None:
                continue
            met = (t for t, v in zip(times, values, strict=True) if targets.meets(v, target))
            setattr(self, name, next(met, None))

    def note_counts(self, epochs: int | None, steps: int | None) -> None:
        """Record how many epochs, or else steps, the job says that it will train."""
        if (epochs, steps) == (self.epoch_count, self.step_count):
            return
        before = self.length
        self.epoch_count, self.step_count = epochs, steps
        if before and self.length and before.unit != self.length.unit:
            self.epoch_cost = None

    def note_positions(
        self, reports: Iterable[tuple[int, int | None, float | None]], use: Use
    ) -> None:
        """Measure what an epoch or a step costs, from reports (time, step, epoch) in order of time.
        Samples up to these times must be in `use` before."""
        length, since, cost = self.length, use.effort_since, self.epoch_cost
        for time, step, epoch in reports if length is not None else ():
            position = step if length and length.unit == STEP else epoch
            if position is not None and time > since:
                report = float(position), use.effort_at(time)
                cost = cost.after(*report) if cost else EpochCost(*report)
        self.epoch_cost = cost

    def forget_costs(self) -> None:
        """Drop what is known of effort, as its unit has changed: the two units do not mix."""
        self.epoch_cost = self.pace = None
        for series in self.metrics.values():
            series.forget_learning()

    def explores(self, attained: float, seconds: float) -> bool:
        """Tell whether a job that has had so many CPU seconds has had less than `seconds` and has
        not reported twice: one report does not show how fast it progresses. Nor do two that come
        too soon for a cost of each epoch, where its length is known."""
        is_unmeasured = self.epoch_cost is not None and not self.epoch_cost.needs
        return attained < seconds and (self.reports < 2 or is_unmeasured)

    def forget(self, until: int) -> None:
        """Drop the points that no window from `until` on needs."""
        for series in self.metrics.values():
            series.forget(until)
