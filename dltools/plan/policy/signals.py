"""What policies read off a job: its evaluation metric, progress score and growth efficiency.

Over an interval `itval` that ends at `t`, after FlowCon (Zheng et al., ICPP 2019; the authors'
published code unless marked as ours):

- `E_i`, the mean of the evaluation metric over (t-itval, t], divided by the largest absolute
  value seen so far, and `E_{i-1}`, the same over the interval before;
- progress score P = |E_i - E_{i-1}| / itval, in 1/s;
- R, the mean CPU use over the interval as a fraction of the node;
- growth efficiency G = P / R.

Ours: an unknown G is None, not 0, lest every newcomer count as converged; a job whose window
holds nothing finite has diverged and has P = 0; `signed` counts only change for the better.

Beside growth, what a job's learning curve predicts: the CPU seconds that it still needs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from dltools.labels import METRIC, OBJECTIVE
from dltools.observations import metrics
from dltools.plan.policy import curves
from dltools.plan.policy.container_history import JITTER, MICRO, ContainerHistory
from dltools.plan.policy.curves import Curve
from dltools.plan.policy.metric_series import Series

_IDLE = 1e-6
"""Fraction of a node under which a job has used no CPU to speak of."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How fast a job grows and what that costs.

    `metric` is "" where there is none; `progress` is P (1/s), `cpu` R (fraction of the node),
    `efficiency` G (1/s); None means unknown. `note` says what a reader should know of them.
    """

    metric: str
    progress: float | None
    cpu: float | None
    efficiency: float | None
    note: str


def objective(job: ContainerHistory, metric: str) -> str:
    """Return "max" or "min": the label `dltools.objective`, else what the metric's name says."""
    label = job.labels.get(OBJECTIVE, "").strip().lower()
    if label in ("min", "max"):
        return label
    return metrics.objective(metric)


def candidates(job: ContainerHistory) -> list[str]:
    """Return the job's metrics, best evaluation metric first.

    The order (ours): the label `dltools.metric`, where the job reports that; else as
    `dltools.observations.metrics.rank` has it.
    """
    wanted = job.labels.get(METRIC)
    if wanted in job.metrics:
        return [wanted]
    if len(job.metrics) == 1:
        return list(job.metrics)
    return sorted(job.metrics, key=metrics.rank)


def growth(
    job: ContainerHistory, now: int, interval_s: float, cpus: float, *, signed: bool = False
) -> Growth:
    """Return the growth of a job over the interval of `interval_s` seconds that ends at `now`.

    `cpus` is the node's size. The evaluation metric is the first candidate with points in both
    intervals; without one, growth is unknown.
    """
    itval = round(interval_s * MICRO)
    names = candidates(job)
    for name in names:
        series = job.metrics[name]
        current = series.window(now - itval, now)
        previous = series.window(now - 2 * itval, now - itval)
        if current and previous:
            return _growth(job, name, series, previous, current, now, itval, cpus, signed)
    metric = names[0] if names else ""
    note = f"no {metric or 'metric'} in two intervals of {interval_s:g} s yet"
    return Growth(metric, None, None, None, note)


def signal_of(found: Growth) -> str:
    """Return what there is to say of a growth in a few words."""
    if found.efficiency is None:
        return found.note
    return f"G {found.efficiency:.3g}/s of {found.metric}"


def _growth(
    job: ContainerHistory,
    metric: str,
    series: Series,
    previous: Sequence[float],
    current: Sequence[float],
    now: int,
    itval: int,
    cpus: float,
    signed: bool,
) -> Growth:
    cpu, cpu_note = cpu_share(job, now, itval, cpus)
    before, after = _mean(previous, series.peak), _mean(current, series.peak)
    if after is None:
        return Growth(metric, 0.0, cpu, 0.0, f"{metric} is no longer finite: diverged")
    if before is None:
        return Growth(metric, None, cpu, None, f"{metric} was not finite before")
    change = after - before
    if signed:
        change = max(0.0, change if objective(job, metric) == "max" else -change)
    progress = abs(change) / (itval / MICRO)
    if progress == 0:
        return Growth(metric, 0.0, cpu, 0.0, cpu_note)
    if cpu is None or cpu < _IDLE:
        return Growth(metric, progress, cpu, None, cpu_note or "no CPU used")
    return Growth(metric, progress, cpu, progress / cpu, cpu_note)


def _mean(values: Sequence[float], peak: float) -> float | None:
    """Return the mean of the finite values as fractions of the peak, None where there are none."""
    total = sum(values)
    if math.isfinite(total) and peak > 0:
        return total / len(values) / peak
    finite = [value / peak if peak > 0 else 0.0 for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else None


def cpu_share(job: ContainerHistory, now: int, itval: int, cpus: float) -> tuple[float | None, str]:
    """Return the mean CPU use over the interval as a fraction of the node, and a note.

    From the two counter samples that bracket the interval (microseconds); else from those inside
    it; else the average since the container's start (ours).
    """
    samples = job.samples
    last = bisect.bisect_right(samples, (now, math.inf)) - 1
    if last < 0 or cpus <= 0:
        return None, "no CPU sample"
    end, used = samples[last]
    start = samples[max(0, bisect.bisect_right(samples, (now - itval, math.inf)) - 1)]
    if start[0] < end:
        short = start[0] > now - itval * (1 - JITTER)
        note = f"CPU over {(end - start[0]) / MICRO:.3g} s" if short else ""
        return (used - start[1]) * MICRO / (end - start[0]) / cpus, note
    if job.started is not None and job.started < end:
        return used * MICRO / (end - job.started) / cpus, "CPU averaged since its start"
    return None, "no CPU sample"


# Predictions

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
        series.curve = curves.fit(kept.works, kept.values)


def curve(job: ContainerHistory, metric: str) -> Curve | None:
    """Return the fitted learning curve of a metric, over CPU seconds; None where unknown."""
    series = job.metrics.get(metric)
    return series.curve if series else None


def metric_of(job: ContainerHistory) -> str | None:
    """Return the metric that a job's learning is judged by: its target's, where it reports that,
    else the first one."""
    if job.targets.metric in job.metrics:
        return job.targets.metric
    return next(iter(candidates(job)), None)


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
    return f"{metric} tends to {end[0]:.4g} ({min(end):.3g} to {max(end):.3g}),"


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
            seconds = max(0.0, job.attained * (total - done) / done)
            return Remaining(seconds, f"{what} {done:g} of {total:g}: {seconds:.3g} CPU s left")
    target = targets.final if targets.final is not None else targets.first
    if target is not None and targets.metric in job.metrics:
        return to_target(job, target)
    return _to_convergence(job)


def _to_convergence(job: ContainerHistory) -> Remaining:
    metric = metric_of(job)
    found = curve(job, metric) if metric else None
    if metric is None or found is None:
        return Remaining(None, "too few points to predict")
    end, seconds = found.asymptote(), found.convergence(_CONVERGED)
    if found.flat or seconds <= job.attained - found.last:
        return Remaining(math.inf, f"{metric} has converged, yet it goes on", converged=True)
    if end is None or math.isinf(seconds):
        return Remaining(math.inf, f"{metric} has no end in sight")
    seconds -= job.attained - found.last
    return Remaining(seconds, f"{metric} at {end[0]:.4g} in {seconds:.3g} CPU s")
