"""What a job's learning curve predicts: the CPU seconds that the job still needs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter

from dltools.plan.policy import curve_fit
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.curve import Curve
from dltools.plan.policy.evaluation_metric import metric_of
from dltools.plan.policy.metric_series import Series

_REFIT = 1.2
"""Growth of a history (in points) after which its curve is fitted anew."""

_FITS = 12

_CONVERGED = 0.02
"""Share of a curve's whole way that is left when it counts as converged (ours)."""


def refit(jobs: Iterable[ContainerHistory]) -> None:
    """Fit the learning curves anew whose histories have grown by a fifth: at most 12 of a round,
    those that have grown most, so that no round takes long. A policy calls it before it looks."""
    grown = []
    for job in jobs:
        metric = metric_of(job)
        series = job.metrics.get(metric) if metric else None
        if series is None or series.learning is None or not series.learning.seen:
            continue
        seen = series.learning.seen
        if not series.fitted <= seen < series.fitted * _REFIT:
            grown.append((series.fitted / seen, job.name, job.id, series))
    for *_, series in sorted(grown, key=itemgetter(0, 1, 2))[:_FITS]:
        kept = series.learning
        assert kept is not None
        series.fitted = kept.seen
        series.curve = curve_fit.fit(kept.works, kept.values)


def curve(job: ContainerHistory, metric: str) -> Curve | None:
    """Return the fitted learning curve of a metric, over CPU seconds; None where unknown."""
    series = job.metrics.get(metric)
    return series.curve if series else None


@dataclass(frozen=True, slots=True)
class Remaining:
    """The CPU seconds that a job still needs (infinite: it will not get there; None: unknown), how
    that is known, and whether it has converged and goes on for nothing."""

    seconds: float | None
    note: str
    converged: bool = False


def to_target(job: ContainerHistory, target: float) -> Remaining:
    """Return the CPU seconds until a job's metric meets a target, by its curve."""
    metric = job.targets.metric or ""
    found = curve(job, metric)
    series = job.metrics.get(metric)
    if series is None or not series.values:
        return Remaining(None, f"no {metric} yet")
    if found is None:
        return _by_slope(job, series, target)
    past = job.attained - found.last
    total = found.work_to(target)
    if math.isinf(total):
        return Remaining(math.inf, f"{_end(found, metric)} short of {target:g}")
    seconds = max(0.0, total - past)
    return Remaining(seconds, f"{metric} {target:g} in {seconds:.3g} CPU s")


def _end(found: Curve, metric: str) -> str:
    end = found.asymptote()
    if end is None:
        return f"{metric} stays"
    return f"{metric} tends to {end.value:.4g} ({end.least:.3g} to {end.greatest:.3g}),"


def _by_slope(job: ContainerHistory, series: Series, target: float) -> Remaining:
    """Extrapolate the straight line through the first and last point (too few for a curve)."""
    kept = series.learning
    if kept is None or len(kept.values) < 2 or not kept.works[-1] > kept.works[0]:
        return Remaining(None, "too few points to predict")
    slope = (kept.values[-1] - kept.values[0]) / (kept.works[-1] - kept.works[0])
    need = target - kept.values[-1]
    if slope == 0 or need / slope < 0:
        return Remaining(None, "too few points to predict")
    seconds = max(0.0, need / slope - (job.attained - kept.works[-1]))
    return Remaining(seconds, f"{target:g} in {seconds:.3g} CPU s by its slope")


def remaining(job: ContainerHistory) -> Remaining:
    """Return the CPU seconds until a job is done.

    By its epochs or steps, where labels say how many it will train; else until its final (or only)
    target, where it reports that metric; else until its curve has come 98 % of its way (ours).
    """
    targets = job.targets
    for total, done, what in (
        (targets.epochs, job.epoch, "epoch"), (targets.steps, job.step, "step"),
    ):  # fmt: skip
        if total is not None and done is not None and done > 0:
            seconds = _at_its_cost(job, total, done)
            return Remaining(seconds, f"{what} {done:g} of {total:g}: {seconds:.3g} CPU s left")
    target = targets.final if targets.final is not None else targets.first
    if target is not None and targets.metric in job.metrics:
        return to_target(job, target)
    return _to_convergence(job)


def _at_its_cost(job: ContainerHistory, total: float, done: float) -> float:
    """Return the CPU seconds until `total` epochs or steps; before the cost is known, by what those
    that are `done` took together."""
    if job.epoch_cost is not None and total == job.targets.length:
        left = job.epoch_cost.left(total, done, job.attained)
        if left is not None:
            return left
    return max(0.0, job.attained * (total - done) / done)


def _to_convergence(job: ContainerHistory) -> Remaining:
    metric = metric_of(job)
    found = curve(job, metric) if metric else None
    if metric is None or found is None:
        return Remaining(None, "too few points to predict")
    end, seconds = found.asymptote(), found.convergence(_CONVERGED)
    if found.is_flat or seconds <= job.attained - found.last:
        return Remaining(math.inf, f"{metric} has converged, yet it goes on", converged=True)
    if end is None or math.isinf(seconds):
        return Remaining(math.inf, f"{metric} has no end in sight")
    seconds -= job.attained - found.last
    return Remaining(seconds, f"{metric} at {end.value:.4g} in {seconds:.3g} CPU s")
