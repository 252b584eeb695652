"""Chooses the metric that a job is judged by, and says when a metric shows nothing.

The rules are ours:

- A metric that has never been finite is skipped: the next one counts.
- A metric is lost if it was finite once, and not in its newest three reports. A job has diverged if
  its metric is lost and its training loss, if it reports one, is lost too. Otherwise a lost metric
  is skipped until it is finite again.
- Rewards, and losses of adversarial networks, count only while they change by more than they
  fluctuate. While they are flat, they show nothing.
- A metric that is worse than its first value by a twentieth, and has never been better by as much,
  is warming up: getting worse shows nothing yet. That ends when the job has had half an hour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from dltools.labels import METRIC, OBJECTIVE
from dltools.observations import judging_metric, metric_names
from dltools.plan.signals.job import Job

_CLEARLY = 0.05
"""A metric is clearly worse or better than at first if it differs by this part of its first
value."""

WARM_UP_S = 1800.0
"""Effort (s) after which a metric that has only become worse is no longer warming up: learning
rates rise for a few hundred to a few thousand steps."""

_FEWEST, _ERRORS = 3, 3.0
"""A fluctuating metric has changed if there are this many finite values before and after, and the
difference of their means is more than this many standard errors."""

_ROUNDING = 1e-9
"""Means of equal values may differ by this part of the largest value, by rounding."""


def objective(job: Job, metric: str) -> str:
    """Return "max" or "min": the label `dltools.objective`, else what the metric's name says."""
    label = job.labels.get(OBJECTIVE, "").strip().lower()
    if label in ("min", "max"):
        return label
    return metric_names.objective(metric)


def has_values(job: Job, metric: str | None) -> bool:
    """Tell whether a job has ever reported a finite value of a metric."""
    series = job.progress.metrics.get(metric or "")
    return series is not None and series.count > 0


def candidates(job: Job) -> list[str]:
    """Return the job's metrics that have had finite values, best evaluation metric first.

    The metric of the label `dltools.metric` comes first if the job reports it; the order of the
    others is that of `dltools.observations.judging_metric.evaluation_order` (ours).
    """
    metric = job.labels.get(METRIC)
    if metric is not None and has_values(job, metric):
        return [metric]
    metrics = {name: series for name, series in job.progress.metrics.items() if series.count}
    if len(metrics) < 2:
        return list(metrics)
    seen = [
        judging_metric.Seen(one.peak, one.count, one.low == one.high) for one in metrics.values()
    ]
    return judging_metric.evaluation_order(dict(zip(metrics, seen, strict=True)))


def metric_of(job: Job) -> str | None:
    """Return the metric that a job's learning is judged by.

    It is the metric of its target if the job reports it, else the first candidate that is not lost
    or with which the job has diverged. If no metric has ever been finite, it is the first one.
    """
    if has_values(job, job.progress.targets.metric):
        return job.progress.targets.metric
    names, metrics = candidates(job), job.progress.metrics
    judging = (name for name in names if not metrics[name].is_lost or has_diverged(job, name))
    rest = names or sorted(metrics, key=judging_metric.evaluation_rank)
    return next(judging, next(iter(rest), None))


def has_diverged(job: Job, metric: str) -> bool:
    """Tell whether a job that is judged by a metric has diverged: the metric is lost, and so is
    every training loss. Without a training loss every loss must be lost, without any loss every
    metric."""
    if not job.progress.metrics[metric].is_lost:
        return False
    metrics = {name: series for name, series in job.progress.metrics.items() if series.count}
    losses = [name for name in metrics if judging_metric.is_training_loss(name)]
    losses = losses or [name for name in metrics if judging_metric.is_loss(name)]
    return all(metrics[name].is_lost for name in losses or metrics)


def fluctuating(job: Job) -> frozenset[str]:
    """Return the metrics of a job that count only while they change by more than they fluctuate."""
    return judging_metric.fluctuating(
        name for name, one in job.progress.metrics.items() if one.count
    )


def has_changed(before: Sequence[float], after: Sequence[float]) -> bool:
    """Tell whether the means of finite values differ by more than the values fluctuate."""
    parts = [[value for value in part if math.isfinite(value)] for part in (before, after)]
    largest = max((abs(value) for part in parts for value in part), default=0.0)
    if min(map(len, parts)) < _FEWEST or largest == 0:
        return False
    parts = [[value / largest for value in part] for part in parts]
    chance = _ERRORS * math.sqrt(math.fsum(variance(part) / len(part) for part in parts))
    return abs(fmean(parts[1]) - fmean(parts[0])) > max(chance, _ROUNDING)


def why_flat(metric: str) -> str:
    """Return why a fluctuating metric that has not changed shows nothing."""
    if judging_metric.is_loss(metric):
        return f"{metric} is flat, which does not show whether an adversarial network learns"
    return f"{metric} is flat or fluctuates, which does not show whether an agent learns"


def is_warming_up(job: Job, metric: str, value: float) -> bool:
    """Tell whether a young job's metric is warming up: its value is worse than its first one, and
    it has never been better, like a loss while the learning rate rises."""
    series = job.progress.metrics[metric]
    if series.first is None or job.use.attained > WARM_UP_S:
        return False
    clearly = _CLEARLY * abs(series.first)
    if objective(job, metric) == "max":
        return series.first - value > clearly >= series.high - series.first
    return value - series.first > clearly >= series.first - series.low
