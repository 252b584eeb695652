"""Predicts the effort that a job still needs, from its labels or its learning curve.

The effort is in seconds of the job's resource, as `Use.resource` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from dltools.observations.targets import Length
from dltools.plan.signals import curves, evaluation_metric
from dltools.plan.signals.curves import Curve
from dltools.plan.signals.job import Job
from dltools.plan.signals.metric_series import Series

_REFIT = 1.2
"""A curve is fitted anew when its history has this many times the points of the last fit."""

_FITS = 8
_TOO_FEW = "too few points to predict"


def refit(jobs: Iterable[Job]) -> None:
    """Fit the learning curves anew whose histories have grown by a fifth.

    At most 8 curves are fitted in a round, those that have grown most first, so that no round
    takes long. A policy calls this before it asks for predictions.
    """
    grown = []
    for job in jobs:
        series = job.progress.metrics.get(evaluation_metric.metric_of(job) or "")
        kept = series.learning if series is not None else None
        if series is None or kept is None or not kept.seen:
            continue
        if not series.fitted <= kept.seen < series.fitted * _REFIT:
            grown.append((series.fitted / kept.seen, job.name, job.id, series, kept))
    for *_, series, kept in sorted(grown, key=lambda row: row[:3])[:_FITS]:
        series.fitted = kept.seen
        series.curve = curves.fit(kept.works, kept.values)


class Remaining(NamedTuple):
    """The effort that a job still needs, as predicted."""

    seconds: float | None
    """Of its resource, infinity if it will not reach its end, None if unknown."""

    note: str
    """How that is known."""

    converged: bool = False
    """Whether it has converged and still runs."""


class Evidence(NamedTuple):
    """What a metric shows of a job's learning."""

    metric: str
    """The name of the metric, "" for none."""

    curve: Curve | None = None
    """The metric over the effort, None if it shows nothing or the job has diverged."""

    note: str = ""
    """Why there is no curve, "" where there is one."""

    has_diverged: bool = False
    """Whether the job has diverged."""

    fluctuates: bool = False
    """Whether it fluctuates: then a flat curve does not show convergence."""

    @property
    def left(self) -> Remaining:
        """The effort that is left, where no curve shows it: one that has diverged never ends."""
        return Remaining(math.inf if self.has_diverged else None, self.note, self.has_diverged)


def evidence(job: Job, metric: str | None) -> Evidence:
    """Return what a metric shows of a job's learning (see `evaluation_metric`)."""
    if metric is None or not evaluation_metric.has_values(job, metric):
        return Evidence(metric or "", None, _TOO_FEW)
    if evaluation_metric.has_diverged(job, metric):
        return Evidence(metric, None, f"{metric} is no longer finite: diverged", has_diverged=True)
    series = job.progress.metrics[metric]
    curve, fluctuates = series.curve, metric in evaluation_metric.fluctuating(job)
    if curve is None:
        return Evidence(metric, None, _TOO_FEW)
    if fluctuates and not _has_changed(series):
        return Evidence(metric, None, evaluation_metric.why_flat(metric))
    if evaluation_metric.is_warming_up(job, metric, curve.level):
        return Evidence(metric, None, f"{metric} is worse than at first: warm-up")
    return Evidence(metric, curve, fluctuates=fluctuates)


def _has_changed(series: Series) -> bool:
    """Tell whether the later half of the points that a fit uses differs from the earlier half."""
    values = series.learning.values if series.learning else []
    values = values[int(len(values) * curves.WARM_UP) :]
    half = len(values) // 2
    return evaluation_metric.has_changed(values[:half], values[len(values) - half :])


def to_target(job: Job, target: float) -> Remaining:
    """Return the effort until a job's metric meets a target, by its curve."""
    metric = job.progress.targets.metric or ""
    if not evaluation_metric.has_values(job, metric):
        return Remaining(None, f"no {metric} yet")
    shown, series = evidence(job, metric), job.progress.metrics[metric]
    curve = shown.curve
    if curve is None:
        is_too_short = series.curve is None and not shown.has_diverged
        return _by_slope(job, series, target) if is_too_short else shown.left
    past = job.use.effort - curve.last
    total = curve.work_to(target)
    if math.isinf(total):
        ends = "stays" if curve.end is None else f"tends to {curve.end:.4g},"
        return Remaining(math.inf, f"{metric} {ends} short of {target:g}")
    seconds = max(0.0, total - past)
    return Remaining(seconds, f"{metric} {target:g} in {seconds:.3g} {job.use.effort_unit}")


def _by_slope(job: Job, series: Series, target: float) -> Remaining:
    """Extrapolate the straight line through the first and last point, where there are too few
    points for a curve."""
    kept = series.learning
    if kept is None or len(kept.values) < 2 or not kept.works[-1] > kept.works[0]:
        return Remaining(None, _TOO_FEW)
    slope = (kept.values[-1] - kept.values[0]) / (kept.works[-1] - kept.works[0])
    need = target - kept.values[-1]
    if slope == 0 or need / slope < 0:
        return Remaining(None, _TOO_FEW)
    seconds = max(0.0, need / slope - (job.use.effort - kept.works[-1]))
    return Remaining(seconds, f"{target:g} in {seconds:.3g} {job.use.effort_unit} by its slope")


def remaining(job: Job) -> Remaining:
    """Return the effort until a job is done.

    A job is done after the epochs or steps that its labels name; else when it meets its final (or
    only) target, if it reports that metric; else after the epochs or steps that its log names; else
    when its curve has made 98 % of its whole change (ours).
    """
    targets = job.progress.targets
    if (left := _to_length(job, targets.lengths)) is not None:
        return left
    target = targets.final if targets.final is not None else targets.first
    if target is not None and evaluation_metric.has_values(job, targets.metric):
        return to_target(job, target)
    return _to_length(job, job.progress.said_lengths) or _to_convergence(job)


def length_left(job: Job, *, at_least: bool = False) -> float | None:
    """Return the effort that is left of the epochs or steps that a job's labels or its log name,
    None where none are named, or nothing is known of their cost."""
    progress = job.progress
    under_way = _under_way(job, progress.targets.lengths + progress.said_lengths)
    return None if under_way is None else _at_its_cost(job, *under_way, at_least=at_least)


def _to_length(job: Job, lengths: Iterable[Length]) -> Remaining | None:
    """Return the effort until the first known length, None where there is none (`_under_way`)."""
    if (under_way := _under_way(job, lengths)) is None:
        return None
    length, done = under_way
    seconds = _at_its_cost(job, length, done)
    cost = "cost unknown" if seconds is None else f"{seconds:.3g} {job.use.effort_unit} left"
    return Remaining(seconds, f"{length.unit} {done:g} of {length.total:g}: {cost}")


def _under_way(job: Job, lengths: Iterable[Length]) -> tuple[Length, float] | None:
    """Return the first known length, and how much of it is done. None if no length is known, or
    the job runs on beyond it: a second phase, or a number that was wrong."""
    epoch_cost = job.progress.epoch_cost
    for length in lengths:
        total, done = length.total, job.progress.position(length.unit)
        if done is not None and (
            0 < done < total
            or (done == total and not (epoch_cost and epoch_cost.runs_on(job.use.effort)))
        ):
            return length, done
    return None


def _at_its_cost(job: Job, length: Length, done: float, *, at_least: bool = False) -> float | None:
    """Return the effort until so many epochs or steps, None while it is unknown. Before the cost of
    one is measured, only CPU seconds tell it: a job may have begun long before others count. They
    do not tell what it takes `at_least`, as they include the start-up."""
    cost = job.progress.epoch_cost if length == job.progress.length else None
    if (at_least or job.use.resource.is_device) and not (cost and cost.needs):
        return None
    if cost is None:
        return max(0.0, job.use.attained * (length.total - done) / done)
    return cost.left(length.total, done, job.use.effort, at_least=at_least)


def _to_convergence(job: Job) -> Remaining:
    shown = evidence(job, evaluation_metric.metric_of(job))
    metric, curve = shown.metric, shown.curve
    if curve is None:
        return shown.left
    seconds = curve.to_convergence
    if curve.is_flat or seconds <= job.use.effort - curve.last:
        if shown.fluctuates:
            return Remaining(None, evaluation_metric.why_flat(metric))
        return Remaining(math.inf, f"{metric} has converged, but the job runs on", converged=True)
    if curve.end is None or math.isinf(seconds):
        return Remaining(math.inf, f"{metric} has no end in sight")
    seconds -= job.use.effort - curve.last
    return Remaining(seconds, f"{metric} at {curve.end:.4g} in {seconds:.3g} {job.use.effort_unit}")
