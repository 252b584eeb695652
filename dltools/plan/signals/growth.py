"""Growth of a job: its progress score and growth efficiency.

Over an interval that ends at `t`, after FlowCon (Zheng et al., ICPP 2019; the authors' published
code unless marked as ours):

- `E_i`, the mean of the evaluation metric over (t - interval, t], divided by the largest absolute
  value seen so far, and `E_{i-1}`, the same over the interval before;
- progress score P = |E_i - E_{i-1}| / interval, in 1/s;
- R, the mean CPU use over the interval as a share of the host;
- growth efficiency G = P / R.

The following is ours:

- For a job whose effort is not in CPU seconds, R is the number of devices that it keeps busy, so
  that G is growth per device second. It is unknown until the job has used one for two intervals,
  because the units do not mix.
- An unknown G is None, not 0, so that a new job does not count as converged. G is also unknown
  while the job's metrics show nothing, see `dltools.plan.signals.evaluation_metric`.
- A job that has diverged has P = 0.
- `signed` counts only change for the better, and none before a warm-up is over.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dltools.notation.resources import Resource
from dltools.notation.times import MICRO, format_seconds
from dltools.plan.signals import evaluation_metric
from dltools.plan.signals.container_history import JITTER
from dltools.plan.signals.job import Job
from dltools.plan.signals.metric_series import Series

_IDLE = 1e-6
"""A job that used less than this share of the host counts as having used no CPU."""


class Growth(NamedTuple):
    """How fast a job grows, and how much time of its resource that takes."""

    metric: str
    """The metric that tells it, "" if there is none."""

    progress: float | None
    """Its progress score P (1/s), None if unknown."""

    use: float | None
    """Its use R: the share of the host's CPUs, or the number of devices; None if unknown."""

    efficiency: float | None
    """Its growth efficiency G = P / R (1/s), None if unknown."""

    note: str
    """What qualifies these, in a few words; "" for nothing."""

    per: str = ""
    """The unit of effort in texts, "" for CPU time."""

    is_early: bool = False
    """Whether it was computed from the first reports, before two intervals are over."""


class MeanUse(NamedTuple):
    """Mean use over an interval: of CPUs as a share of the host, of devices as a number, None
    if unknown; and a note for people."""

    share: float | None
    note: str


def growth(job: Job, now: int, interval_s: float, cpus: float, *, signed: bool = False) -> Growth:
    """Return the growth of a job over the interval of `interval_s` seconds that ends at `now`.

    `cpus` is the host's size. The evaluation metric is the first candidate with values that show
    something in this interval and in the one before. Without one, growth is unknown.
    """
    interval = round(interval_s * MICRO)

    def halves_of(metric: str, series: Series) -> _Halves | None:
        after = series.window(now - interval, now)
        before = series.window(now - 2 * interval, now - interval)
        halves = _Halves(metric, before, after, now - interval, now, series.peak)
        return halves if before and after else None

    judged = _judged(job, halves_of)
    use = effort_use(job, now, interval, cpus)
    if isinstance(judged, _Halves):
        return _growth(job, judged, use, is_signed=signed)
    if judged.note:
        return judged._replace(use=use.share)
    note = f"no {judged.metric or 'metric'} in two intervals of {interval_s:g} s yet"
    return judged._replace(note=note)


def early_growth(
    job: Job, now: int, interval_s: float, cpus: float, *, signed: bool = False
) -> Growth | None:
    """Return the growth of a job whose first report is less than two intervals old (ours).

    It compares the means of the earlier and the later half of the job's reports; None before two
    reports. P and R are over the time between the mean times of both halves.
    """

    def halves_of(metric: str, series: Series) -> _Halves | None:
        half = len(series.times) // 2
        if not half or series.times[0] <= now - round(2 * interval_s * MICRO):
            return None
        begin, end = sum(series.times[:half]) // half, sum(series.times[-half:]) // half
        before, after = series.values[:half], series.values[-half:]
        halves = _Halves(metric, before, after, begin, end, series.peak)
        return halves if begin < end else None

    judged = _judged(job, halves_of)
    if not isinstance(judged, _Halves) or cpus <= 0 or judged.begin < job.use.effort_since:
        return None
    effort = job.use.effort_at(judged.end) - job.use.effort_at(judged.begin)
    whole = 1.0 if job.use.resource.is_device else cpus
    use = MeanUse(effort / judged.span_s / whole, "first reports")
    return _growth(job, judged, use, is_signed=signed)._replace(is_early=True)


def signal_of(rate: Growth) -> str:
    """Return a growth as a short text."""
    if rate.efficiency is None:
        return rate.note
    return f"G {rate.efficiency:.3g}{rate.per or '/s'} of {rate.metric}"


class _Halves(NamedTuple):
    """The values of a metric in two successive spans of time, neither of them empty.

    The mean of each counts as the value at `begin` and at `end` (microseconds). `peak`: the largest
    absolute value seen so far.
    """

    metric: str
    before: Sequence[float]
    after: Sequence[float]
    begin: int
    end: int
    peak: float

    @property
    def span_s(self) -> float:
        """Seconds from one to the other."""
        return (self.end - self.begin) / MICRO


def _judged(job: Job, halves_of: Callable[[str, Series], _Halves | None]) -> _Halves | Growth:
    """Return the values of the first candidate that has some in both spans and shows something; or
    the growth without one, whose note says why ("": no metric has points)."""
    names, doubtful = evaluation_metric.candidates(job), evaluation_metric.fluctuating(job)
    flat: list[str] = []
    note = ""
    for name in names:
        if flat and name not in doubtful:
            break
        halves = halves_of(name, job.progress.metrics[name])
        if halves is None:
            continue
        if evaluation_metric.has_diverged(job, name):
            return Growth(name, 0.0, None, 0.0, f"{name} is no longer finite: diverged")
        if not any(map(math.isfinite, halves.after)):
            note = note or f"{name} is not finite now"
        elif not any(map(math.isfinite, halves.before)):
            note = note or f"{name} was not finite before"
        elif name in doubtful and not evaluation_metric.has_changed(halves.before, halves.after):
            flat.append(name)
        else:
            return halves
    if flat:
        return Growth(flat[0], None, None, None, evaluation_metric.why_flat(flat[0]))
    if job.progress.metrics and not names:
        note = f"{min(job.progress.metrics)} has never been finite"
    return Growth(next(iter(names), ""), None, None, None, note)


def _growth(job: Job, halves: _Halves, use: MeanUse, *, is_signed: bool) -> Growth:
    """Return the growth between two spans of a metric, each with a finite value. `is_signed` counts
    only change for the better."""
    metric = halves.metric
    before, after = _mean(halves.before, halves.peak), _mean(halves.after, halves.peak)
    change = after - before
    progress = abs(change)
    if is_signed:
        is_up = evaluation_metric.objective(job, metric) == "max"
        progress = max(0.0, change if is_up else -change)
        warms_up = evaluation_metric.is_warming_up(job, metric, after * halves.peak)
        if progress == 0 and change and warms_up:
            note = f"{metric} is worse than at first: warm-up"
            return Growth(metric, None, use.share, None, note)
    progress /= halves.span_s
    resource = job.use.resource
    per = f" per {resource} second" if resource.is_device else ""
    if progress == 0:
        return Growth(metric, 0.0, use.share, 0.0, use.note, per)
    if use.share is None or use.share < _IDLE:
        return Growth(metric, progress, use.share, None, use.note or f"no {resource} used", per)
    return Growth(metric, progress, use.share, progress / use.share, use.note, per)


def _mean(values: Sequence[float], peak: float) -> float:
    """Return the mean of the finite values, at least one, as a fraction of the peak."""
    total = sum(values)
    if math.isfinite(total) and peak > 0:
        return total / len(values) / peak
    finite = [value / peak if peak > 0 else 0.0 for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite)


def effort_use(job: Job, now: int, interval: int, cpus: float) -> MeanUse:
    """Return a job's mean use of the resource that its effort is counted in, over the interval
    (microseconds) that ends at `now`: of CPUs as `cpu_use`, or the number of busy devices."""
    if not job.use.resource.is_device:
        return cpu_use(job, now, interval, cpus)
    if job.use.effort_since > now - 2 * interval * (1 - JITTER):
        return MeanUse(None, f"on a {job.use.resource} for less than two intervals")
    return _mean_use(job.use.effort_samples, now, interval, job.use.resource, 1.0)


def cpu_use(job: Job, now: int, interval: int, cpus: float) -> MeanUse:
    """Return the mean CPU use over the interval (microseconds) that ends at `now`.

    It uses the two counter samples that bracket the interval, else those inside it, else the
    average since the container's start (ours).
    """
    samples = job.use.samples if cpus > 0 else []
    mean_use = _mean_use(samples, now, interval, Resource.CPU, cpus)
    if mean_use.share is None and job.use.started is not None:
        mean_use = _mean_use([(job.use.started, 0.0), *samples], now, now, Resource.CPU, cpus)
        if mean_use.share is not None:
            return MeanUse(mean_use.share, "CPU averaged since its start")
    return mean_use


def _mean_use(
    samples: Sequence[tuple[int, float]], now: int, interval: int, what: str, whole: float
) -> MeanUse:
    """Return the mean rate of a counter of seconds over an interval, as a part of the whole; it
    takes two samples."""
    last = bisect.bisect_right(samples, (now, math.inf)) - 1
    end, used = samples[last] if last >= 0 else (0, 0.0)
    first = max(0, bisect.bisect_right(samples, (now - interval, math.inf)) - 1)
    start, before = samples[first] if last >= 0 else (0, 0.0)
    if start >= end:
        return MeanUse(None, f"no {what} sample")
    is_short = start > now - interval * (1 - JITTER)
    note = f"{what} over {format_seconds((end - start) / MICRO)}" if is_short else ""
    return MeanUse((used - before) * MICRO / (end - start) / whole, note)
