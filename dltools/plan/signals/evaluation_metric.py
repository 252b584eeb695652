"""Which of a job's metrics it is judged by, in which direction that metric gets better, and when a
metric says nothing of how the job gets on (all of this is ours).

- A metric that has never been a finite number judges nobody: the next one does.
- A job has diverged when its metric is lost, which means finite once and not finite in its newest
  three reports, and its training loss, if it reports one, is lost too. Else a lost metric is passed
  over until it is finite again.
- Rewards, and losses beside an adversarial pair, judge while they change by more than they
  fluctuate. Flat, they say nothing.
- A metric that is worse than at first by a twentieth, and has never been better by as much, warms
  up: that it gets worse says nothing yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dltools.labels import METRIC, OBJECTIVE
from dltools.observations import metric_names
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.metric_series import Series

_CLEARLY = 0.05
"""Part of its first value by which a metric is clearly worse or better than at first."""

_FEWEST, _ERRORS = 3, 3.0
"""What fluctuates has changed if there are so many finite values before and after, and their means
differ by more than so many times the standard error of that difference."""

_ROUNDING = 1e-9
"""Part of the largest value by which the means of equal values may differ."""


def objective(job: ContainerHistory, metric: str) -> str:
    """Return "max" or "min": the label `dltools.objective`, else what the metric's name says."""
    label = job.labels.get(OBJECTIVE, "").strip().lower()
    if label in ("min", "max"):
        return label
    return metric_names.objective(metric)


def has_values(job: ContainerHistory, metric: str | None) -> bool:
    """Tell whether a job has ever reported a finite value of a metric."""
    series = job.metrics.get(metric or "")
    return series is not None and series.count > 0


def candidates(job: ContainerHistory) -> list[str]:
    """Return the job's metrics that have had finite values, best evaluation metric first.

    The order (ours): the label `dltools.metric`, where the job reports that; else as
    `dltools.observations.metric_names.evaluation_order` has it.
    """
    wanted = job.labels.get(METRIC)
    if wanted is not None and has_values(job, wanted):
        return [wanted]
    known = {name: one for name, one in job.metrics.items() if one.count}
    if len(known) < 2:
        return list(known)
    return metric_names.evaluation_order(
        {name: metric_names.Seen(one.peak, one.count) for name, one in known.items()}
    )


def metric_of(job: ContainerHistory) -> str | None:
    """Return the metric that a job's learning is judged by.

    Its target's, where it reports that, else the first one that is not lost or with which the job
    has diverged. One that has never been finite only where there is no other.
    """
    if has_values(job, job.targets.metric):
        return job.targets.metric
    names = candidates(job)
    judging = (name for name in names if not job.metrics[name].is_lost or has_diverged(job, name))
    rest = names or sorted(job.metrics, key=metric_names.evaluation_rank)
    return next(judging, next(iter(rest), None))


def has_diverged(job: ContainerHistory, metric: str) -> bool:
    """Tell whether a job that is judged by a metric has diverged: it is lost, and so is every
    training loss; without one, every other loss, and without any, every metric."""
    if not job.metrics[metric].is_lost:
        return False
    known = {name: one for name, one in job.metrics.items() if one.count}
    losses = [name for name in known if metric_names.is_training_loss(name)]
    losses = losses or [name for name in known if metric_names.is_loss(name)]
    return all(known[name].is_lost for name in losses or known)


def fluctuating(job: ContainerHistory) -> frozenset[str]:
    """Return those of a job's metrics that judge it only while they change by more than they
    fluctuate."""
    return metric_names.fluctuating(name for name, one in job.metrics.items() if one.count)


def has_changed(before: Sequence[float], after: Sequence[float]) -> bool:
    """Tell whether the means of finite values differ by more than the values fluctuate."""
    parts = [[value for value in part if math.isfinite(value)] for part in (before, after)]
    largest = max((abs(value) for part in parts for value in part), default=0.0)
    if min(map(len, parts)) < _FEWEST or largest == 0:
        return False
    parts = [[value / largest for value in part] for part in parts]
    means = [math.fsum(part) / len(part) for part in parts]
    squares = (
        math.fsum((value - mean) ** 2 for value in part) / (len(part) - 1) / len(part)
        for part, mean in zip(parts, means, strict=True)
    )
    chance = _ERRORS * math.sqrt(math.fsum(squares))
    return abs(means[1] - means[0]) > max(chance, _ROUNDING)


def why_flat(metric: str) -> str:
    """Return why a metric that fluctuates, and has changed by no more than that, says nothing."""
    if metric_names.is_loss(metric):
        return f"{metric} is flat, as losses beside an adversarial pair may be while it learns"
    return f"{metric} is flat or fluctuates, as rewards may while an agent learns"


def is_warming_up(series: Series, aim: str, value: float) -> bool:
    """Tell whether a metric that is now at a value, and gets better as `aim` says, warms up: it is
    worse than at first and has never been better, as a loss while the learning rate rises."""
    first = series.first
    if first is None:
        return False
    clearly = _CLEARLY * abs(first)
    if aim == "max":
        return first - value > clearly >= series.high - first
    return value - first > clearly >= first - series.low
