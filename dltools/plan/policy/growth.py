"""Growth of a job: its progress score and growth efficiency.

Over an interval that ends at `t`, after FlowCon (Zheng et al., ICPP 2019; the authors' published
code unless marked as ours):

- `E_i`, the mean of the evaluation metric over (t - interval, t], divided by the largest absolute
  value seen so far, and `E_{i-1}`, the same over the interval before;
- progress score P = |E_i - E_{i-1}| / interval, in 1/s;
- R, the mean CPU use over the interval as a share of the host;
- growth efficiency G = P / R.

Ours: an unknown G is None, not 0, so that a new job does not count as converged; a job whose
interval holds nothing finite has diverged and has P = 0; `signed` counts only change for the
better.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dltools.notation.times import MICRO
from dltools.plan.policy.container_history import JITTER, ContainerHistory
from dltools.plan.policy.evaluation_metric import candidates, objective

_IDLE = 1e-6
"""Share of a host under which a job counts as having used no CPU."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How fast a job grows, and how much CPU that takes.

    `metric` is "" where there is none; `progress` is P (1/s), `cpu` R (share of the host),
    `efficiency` G (1/s); None means unknown. `note` qualifies them in a few words. `is_early`: from
    its first reports, before two intervals are over.
    """

    metric: str
    progress: float | None
    cpu: float | None
    efficiency: float | None
    note: str
    is_early: bool = False


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Mean CPU use over an interval as a share of the host, None where unknown, and a note."""

    share: float | None
    note: str


def growth(
    job: ContainerHistory, now: int, interval_s: float, cpus: float, *, signed: bool = False
) -> Growth:
    """Return the growth of a job over the interval of `interval_s` seconds that ends at `now`.

    `cpus` is the host's size. The evaluation metric is the first candidate with points in this
    interval and in the one before; without one, growth is unknown.
    """
    interval = round(interval_s * MICRO)
    names = candidates(job)
    for name in names:
        series = job.metrics[name]
        current = series.window(now - interval, now)
        previous = series.window(now - 2 * interval, now - interval)
        if current and previous:
            before, after = _mean(previous, series.peak), _mean(current, series.peak)
            cpu = cpu_use(job, now, interval, cpus)
            sign = (1 if objective(job, name) == "max" else -1) if signed else 0
            return _growth(name, before, after, interval, cpu, sign)
    metric = names[0] if names else ""
    note = f"no {metric or 'metric'} in two intervals of {interval_s:g} s yet"
    return Growth(metric, None, None, None, note)


def early_growth(
    job: ContainerHistory, now: int, interval_s: float, cpus: float, *, signed: bool = False
) -> Growth | None:
    """Return the growth of a job whose first report is less than two intervals old (ours).

    Between the means of the earlier and the later half of its reports; None before it has reported
    twice. P and R are over the time between the mean times of both halves.
    """
    for name in candidates(job):
        series = job.metrics[name]
        half = len(series.times) // 2
        if not half or series.times[0] <= now - round(2 * interval_s * MICRO):
            continue
        before, after = _mean(series.values[:half], series.peak), _mean(
            series.values[-half:], series.peak)  # fmt: skip
        begin, end = sum(series.times[:half]) // half, sum(series.times[-half:]) // half
        if before is None or after is None or begin >= end or cpus <= 0:
            continue
        seconds = (end - begin) / MICRO
        cpu = CpuUse((job.work_at(end) - job.work_at(begin)) / seconds / cpus, "first reports")
        sign = (1 if objective(job, name) == "max" else -1) if signed else 0
        found = _growth(name, before, after, end - begin, cpu, sign)
        return replace(found, is_early=True)
    return None


def signal_of(found: Growth) -> str:
    """Return a growth in a few words."""
    if found.efficiency is None:
        return found.note
    return f"G {found.efficiency:.3g}/s of {found.metric}"


def _growth(
    metric: str, before: float | None, after: float | None, interval: int, cpu: CpuUse, sign: int
) -> Growth:
    """Return the growth between two means of a metric; `sign` 1 counts only a rise, -1 only a
    fall, 0 any change."""
    if after is None:
        return Growth(metric, 0.0, cpu.share, 0.0, f"{metric} is no longer finite: diverged")
    if before is None:
        return Growth(metric, None, cpu.share, None, f"{metric} was not finite before")
    change = after - before
    progress = max(0.0, sign * change) if sign else abs(change)
    progress /= interval / MICRO
    if progress == 0:
        return Growth(metric, 0.0, cpu.share, 0.0, cpu.note)
    if cpu.share is None or cpu.share < _IDLE:
        return Growth(metric, progress, cpu.share, None, cpu.note or "no CPU used")
    return Growth(metric, progress, cpu.share, progress / cpu.share, cpu.note)


def _mean(values: Sequence[float], peak: float) -> float | None:
    """Return the mean of the finite values as fractions of the peak, None where there are none."""
    total = sum(values)
    if math.isfinite(total) and peak > 0:
        return total / len(values) / peak
    finite = [value / peak if peak > 0 else 0.0 for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else None


def cpu_use(job: ContainerHistory, now: int, interval: int, cpus: float) -> CpuUse:
    """Return the mean CPU use over the interval (microseconds) that ends at `now`.

    From the two counter samples that bracket the interval; else from those inside it; else the
    average since the container's start (ours).
    """
    samples = job.samples
    last = bisect.bisect_right(samples, (now, math.inf)) - 1
    if last < 0 or cpus <= 0:
        return CpuUse(None, "no CPU sample")
    end, used = samples[last]
    start = samples[max(0, bisect.bisect_right(samples, (now - interval, math.inf)) - 1)]
    if start[0] < end:
        is_short = start[0] > now - interval * (1 - JITTER)
        note = f"CPU over {(end - start[0]) / MICRO:.3g} s" if is_short else ""
        return CpuUse((used - start[1]) * MICRO / (end - start[0]) / cpus, note)
    if job.started is not None and job.started < end:
        return CpuUse(used * MICRO / (end - job.started) / cpus, "CPU averaged since its start")
    return CpuUse(None, "no CPU sample")
