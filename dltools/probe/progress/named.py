"""The generic reader: finds names and values in the lines that no family reads. `match` calls it.

It reads `Loss: 0.52 Time: 12.1`, `val_acc=0.9`, `grpo_loss is 0.013`. It cuts a line into `tokens`,
decides by the words of the names which are metrics (`line_values`), and finds the step and the
epoch (`line_counters`) and the phase (`phases`) anywhere in the line. Where nothing stands beside a
number, `nearest` names it. `line_meaning` combines these; what lines say of each other is here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from dltools.observations.metric_names import EVALUATED
from dltools.probe.progress.base import Point, clock, number
from dltools.probe.progress.line_counters import NO_COUNT, Count, count
from dltools.probe.progress.line_meaning import PHASED, understand
from dltools.probe.progress.line_shapes import NOTHING, Layout, Meaning, Reading, Shape, Shapes
from dltools.probe.progress.tokens import Stands

_LINES_OF_BEST = 8
"""Lines below a heading that may say the best results again."""

BAR = "bars"
"""The source of what is read beside a bar of tqdm. Where a log is no terminal, each drawing may
have a line of its own."""

_AT_ONCE_S = 2.0
"""How long after a bar it may be drawn again behind a dict, by its own time (s)."""

_POINT, _READING = partial(tuple.__new__, Point), partial(tuple.__new__, Reading)
"""These make a point and a reading of their fields in C."""


class Named:
    """The generic reader of one log; `above` is the step or epoch of a heading, for the lines below
    that name none, `newest` the newest ones, for an evaluation that names none."""

    def __init__(self, shapes: Shapes | None = None) -> None:
        """Keep what is understood in the shapes of the log's lines."""
        self._shapes = Shapes() if shapes is None else shapes
        self.above = NO_COUNT
        self.newest = NO_COUNT
        self._counts_on = False  # steps go on from one epoch to the next
        self._bar, self._is_evaluation = NO_COUNT, False
        self._shown: tuple[int | None, float] = (None, 0.0)  # step and time of a bare bar
        self._longest = 0  # the steps of the longest such bar that is not full
        self._is_full: bool | None = None  # the bar above, whose metrics stand below it
        self._shown_values: dict[str, float] = {}  # by metric of an evaluation, by bars
        self._newest_dict: Sequence[str | None] = ()
        self._awaits_bar = False  # drawn again, which shows the step of the dict above
        self._dicts: set[frozenset[tuple[str, str]]] = set()  # the metrics of dicts below it
        self._counted: set[tuple[str, str]] = set()  # metrics with a counter in their line
        self._stepped: set[str] = set()  # the names of those with a step, but for a bar's
        self._of_best = 0  # how many more lines may say the best results again
        self._title = ""
        self._phase = ""  # of a heading, for the lines below until one names a counter or a phase
        self._below: set[str] = set()  # the metrics below it
        self._may_count = False  # it had no counter of its own

    def points(self, line: str) -> list[Point]:
        """Return one point for each name; if a name comes twice, the first one."""
        return self.read(line).points

    def read(self, line: str, layout: Layout | None = None) -> Reading:
        """Return the points of a line, and whether they stand for themselves; `layout` is the
        line's, if it is known."""
        if layout is None:
            layout = self._shapes.of(line)
        if layout.shape.stands is not Stands.ALONE:
            return self._below_title(line, layout.shape)
        meaning, spans = layout.understood(line, understand)
        if not spans:
            return NOTHING
        return self._reading(meaning, [span and line[span[0] : span[1]] for span in spans])

    def _below_title(self, line: str, shape: Shape) -> Reading:
        """Remember a line that ends with a name, or read the numbers below names."""
        if shape.stands is Stands.ABOVE:
            self._title = line.rstrip()
            return NOTHING
        title, self._title = self._title, ""
        values = line.strip("[]() \t").replace(",", " ").split()
        names = [title[:-1]] if title[-1:] == ":" else title.replace(",", " ").split()
        before, own = names[: -len(values)], names[-len(values) :]
        if len(before) > 1 or len(own) != len(values):
            return NOTHING
        pairs = [f"{name}: {value}" for name, value in zip(own, values, strict=True)]
        return self.read(" ".join([*before, *pairs]))._replace(is_sure=False)

    def _reading(self, meaning: Meaning, texts: Sequence[str | None]) -> Reading:
        at = count(texts[0], meaning.scale, texts[1])
        is_bar, names = meaning.is_bar, [name for name, _ in meaning.metrics]
        if not meaning.metrics:
            return self._without_metrics(meaning, texts, at)
        is_full = texts[-1] == texts[0] if is_bar else None if at is not NO_COUNT else self._is_full
        if self._of_best:
            self._of_best = self._of_best - 1 if at is NO_COUNT else 0
            meaning = meaning._replace(is_final=True)
        if at.step is None and meaning.is_dict and at.epoch is not None:
            if texts == self._newest_dict:  # another process says it again
                return NOTHING
            self._awaits_bar = not self._newest_dict or self._shown[0] is not None
            self._newest_dict = texts
            at = Count(self._step_of_bar(meaning), at.epoch)
        else:
            self._awaits_bar = False
        if texts[0] is not None and not is_bar and not meaning.is_notice:
            self._stepped.update(names)
        elif texts[1] is not None and not self._stepped.isdisjoint(names):
            meaning = self._of_epoch(meaning)
        if self._phase:
            meaning = self._in_phase(meaning, at)
        if self.above is not NO_COUNT and (at.step is None or at.epoch is None):
            at = self.above if at == NO_COUNT else self.above.later(at)
        if meaning.phase:  # batches of an evaluation, with the mean so far
            if not is_full:
                return NOTHING
            at = Count(None, self.newest.epoch)
        is_whole = meaning.is_end and at.epoch not in (None, self._bar.epoch)
        if is_bar and self._has_gone_back(at):
            meaning = _of_phase(meaning, "test")
        if is_bar and at.epoch is None and all(name.startswith(EVALUATED) for name in names):
            at = Count(at.step, self.newest.epoch)
        if is_whole:  # a bar that is drawn once says how many steps an epoch has
            at = Count(None, at.epoch)
        step, epoch = at
        points = _points(meaning, texts, at)
        if is_full is not None:
            is_begun = not all(name.startswith(EVALUATED) for name in names)
            points = [point for point in points if not self._is_stale(point, is_begun) or is_full]
            if not points:
                return NOTHING
        if step is None and epoch is None:
            points = points if meaning.is_final else self.placed(points)
            is_sure = meaning.is_plain and points[0].value != 0
        else:
            if (at.epoch or 0) > (self.newest.epoch or 0):
                self._counts_on = (at.step or 0) > (self.newest.step or math.inf)
            self.newest = at if self.newest.epoch is None else self.newest.later(at)
            self._counted.update(meaning.metrics)
            is_sure = meaning.has_fraction and not meaning.is_doubtful
        return _READING((points, meaning, is_sure, False, self._awaits_bar, None))

    def _without_metrics(self, meaning: Meaning, texts: Sequence[str | None], at: Count) -> Reading:
        """Take note of a heading, or of a bar."""
        if meaning.is_bar and at.epoch is None:
            spent_s = clock(texts[3] or "") or 0.0
            return self._bare_bar(at.step or 0, int(texts[2] or 0), spent_s)
        self._is_full = texts[0] == texts[2] if meaning.is_bar else None
        self._of_best = _LINES_OF_BEST if meaning.is_final else 0
        if not meaning.is_final:
            self.above = self.above if at is NO_COUNT else self.above.later(at)
            self._phase, self._below = meaning.phase, set()
            self._may_count = at is NO_COUNT
        return NOTHING

    def _is_stale(self, point: Point, is_begun: bool) -> bool:
        """Tell whether a bar of an epoch shows what an earlier evaluation has given, unless it is
        full. At its begin that may be one before the training."""
        if point[3] is None or not point[0].startswith(EVALUATED):
            return False
        before, self._shown_values[point[0]] = self._shown_values.get(point[0]), point[1]
        return before == point[1] or (before is None and point[2] == 0 and not is_begun)

    def _in_phase(self, meaning: Meaning, at: Count) -> Meaning:
        """Return a meaning with the phase of the heading above, which ends before a line with a
        counter, a phase or a metric of its own that came before. Right below a heading without a
        counter a step may be that of the phase."""
        names = [metric for metric, _ in meaning.metrics]
        is_own = self._may_count and not self._below and at.epoch is None
        is_over = (at is not NO_COUNT and not is_own) or any(
            name.startswith(PHASED) for name in names
        )
        if is_over or not self._below.isdisjoint(names):
            self._phase = ""
            return meaning
        self._below.update(names)
        return _of_phase(meaning, self._phase)

    def _of_epoch(self, meaning: Meaning) -> Meaning:
        """Return the meaning of a line about an epoch, in which metrics that others give for steps
        are their means."""
        means = {name: f"{name}_mean" for name in self._stepped}
        return meaning._replace(
            metrics=tuple((means.get(name, name), printed) for name, printed in meaning.metrics),
            wholes=frozenset(means.get(name, name) for name in meaning.wholes),
        )

    def _bare_bar(self, step: int, total: int, spent_s: float) -> Reading:
        """Take note of a bar without metrics, and return its step if it is that of the dict before,
        behind which it is drawn again at once. The longest bar is the training's, not an
        evaluation's; one that was full before a dict came is neither's."""
        if total < self._longest:
            return NOTHING
        (before, before_s), self._shown = self._shown, (step, spent_s)
        self._dicts = self._dicts if step == before else set()
        self._longest = 0 if step == total and not self._newest_dict else total
        awaits, self._awaits_bar = self._awaits_bar, False
        is_again = before is None or (step >= before and spent_s - before_s <= _AT_ONCE_S)
        return Reading([], shown=step) if awaits and is_again else NOTHING

    def _step_of_bar(self, meaning: Meaning) -> int | None:
        """Return the step of the bar above a dict of Hugging Face's Trainer. Bars are not drawn for
        each: it is that of the first dict with its names."""
        names = frozenset(meaning.metrics)
        step = None if names in self._dicts else self._shown[0]
        self._dicts.add(names)
        return step

    def _has_gone_back(self, at: Count) -> bool:
        """Tell whether a bar has begun anew in the same epoch: it is that of an evaluation."""
        before, self._bar = self._bar, at
        if at.epoch is None or at.epoch != before.epoch:
            self._is_evaluation = False
        elif at.step is not None and before.step is not None and at.step < before.step:
            self._is_evaluation = True
        return self._is_evaluation

    def placed(self, points: list[Point]) -> list[Point]:
        """Return the points of a line; those without step and epoch get the epoch of the heading
        above, those of an evaluation the newest epoch, and the newest step if steps go on from
        epoch to epoch or the log says no epoch; other metrics that never have a counter the newest
        ones."""
        step, epoch = points[0][2:4]
        if step is not None or epoch is not None:
            self.newest = self.newest.later(Count(step, epoch))
            if epoch is None and self.above.epoch is not None:
                return [point._replace(epoch=self.above.epoch) for point in points]
            return points
        if points[0][4] == "jsonlines" and self.above is not NO_COUNT:
            at = self.above
            return [point._replace(step=at.step, epoch=at.epoch) for point in points]
        is_whole = self.newest.epoch is None or self._counts_on
        of_phase = self.newest if is_whole else Count(None, self.newest.epoch)
        placed = []
        for point in points:
            is_of_phase = point.metric.startswith(EVALUATED)
            is_new = point[4] == "named" and (point[0], point[5]) not in self._counted
            at = of_phase if is_of_phase else self.newest if is_new else NO_COUNT
            placed.append(point if at is NO_COUNT else point._replace(step=at.step, epoch=at.epoch))
        return placed


def _points(meaning: Meaning, texts: Sequence[str | None], at: Count) -> list[Point]:
    """Return the points of a line at its counters."""
    (step, epoch), source = at, BAR if meaning.is_bar else "named"
    points = [
        _POINT((metric, value, step, epoch, source, printed, None, None, None))
        for (metric, printed), value in zip(meaning.metrics, _values(texts[2:]), strict=False)
    ]
    if meaning.has_totals:
        points = _shares(points, texts[2 + len(points) :][: len(points)])
    return list(map(_at_end, points)) if meaning.is_end and epoch is not None else points


def _at_end(point: Point) -> Point:
    """Return a point of a full bar of Keras: a validation is the epoch's, and of no step in it."""
    return point._replace(step=None) if point.metric.startswith("val_") else point


def _of_phase(meaning: Meaning, phase: str) -> Meaning:
    """Return the meaning of a line whose metrics are those of a phase, unless they name theirs."""
    names = {
        name: name if name.startswith(PHASED) else f"{phase}_{name}" for name, _ in meaning.metrics
    }
    return meaning._replace(
        metrics=tuple((names[name], printed) for name, printed in meaning.metrics),
        wholes=frozenset(names[name] for name in meaning.wholes),
    )


def _values(texts: Sequence[str | None]) -> list[float]:
    try:
        return list(map(float, texts))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [number(text or "nan") for text in texts]


def _shares(points: list[Point], totals: Sequence[str | None]) -> list[Point]:
    """Return the points; a number of a total becomes a share of it."""
    shares = []
    for point, total in zip(points, totals, strict=True):
        whole = 0.0 if total is None else number(total)
        shares.append(point._replace(value=point.value / whole) if whole else point)
    return shares
