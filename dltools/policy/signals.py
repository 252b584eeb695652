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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dltools import metrics
from dltools.labels import METRIC, OBJECTIVE
from dltools.policy.history import JITTER, MICRO, Series, Track

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


def objective(track: Track, metric: str) -> str:
    """Return "max" or "min": the label `dltools.objective`, else what the metric's name says."""
    label = track.labels.get(OBJECTIVE, "").strip().lower()
    if label in ("min", "max"):
        return label
    return metrics.objective(metric)


def candidates(track: Track) -> list[str]:
    """Return the job's metrics, best evaluation metric first.

    The order (ours): the label `dltools.metric`; then as `dltools.metrics.rank` has it.
    """
    wanted = track.labels.get(METRIC)
    if wanted:
        return [wanted] if wanted in track.metrics else []
    return sorted(track.metrics, key=metrics.rank)


def growth(track: Track, now: int, itval_s: float, cpus: float, *, signed: bool = False) -> Growth:
    """Return the growth of a job over the interval of `itval_s` seconds that ends at `now`.

    `cpus` is the node's size. The evaluation metric is the first candidate with points in both
    intervals; without one, growth is unknown.
    """
    itval = round(itval_s * MICRO)
    names = candidates(track)
    for name in names:
        series = track.metrics[name]
        current = series.window(now - itval, now)
        previous = series.window(now - 2 * itval, now - itval)
        if current and previous:
            return _growth(track, name, series, previous, current, now, itval, cpus, signed)
    metric = names[0] if names else ""
    note = f"no {metric or 'metric'} in two intervals of {itval_s:g} s yet"
    return Growth(metric, None, None, None, note)


def _growth(
    track: Track,
    metric: str,
    series: Series,
    previous: Sequence[float],
    current: Sequence[float],
    now: int,
    itval: int,
    cpus: float,
    signed: bool,
) -> Growth:
    cpu, cpu_note = cpu_share(track, now, itval, cpus)
    before, after = _mean(previous, series.peak), _mean(current, series.peak)
    if after is None:
        return Growth(metric, 0.0, cpu, 0.0, f"{metric} is no longer finite: diverged")
    if before is None:
        return Growth(metric, None, cpu, None, f"{metric} was not finite before")
    change = after - before
    if signed:
        change = max(0.0, change if objective(track, metric) == "max" else -change)
    progress = abs(change) / (itval / MICRO)
    if progress == 0:
        return Growth(metric, 0.0, cpu, 0.0, cpu_note)
    if cpu is None or cpu < _IDLE:
        return Growth(metric, progress, cpu, None, cpu_note or "no CPU used")
    return Growth(metric, progress, cpu, progress / cpu, cpu_note)


def _mean(values: Sequence[float], peak: float) -> float | None:
    """Return the mean of the finite values as fractions of the peak, None where there are none."""
    finite = [value / peak if peak > 0 else 0.0 for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else None


def cpu_share(track: Track, now: int, itval: int, cpus: float) -> tuple[float | None, str]:
    """Return the mean CPU use over the interval as a fraction of the node, and a note.

    From the two counter samples that bracket the interval (microseconds); else from those inside
    it; else the average since the container's start (ours).
    """
    samples = [sample for sample in track.samples if sample[0] <= now]
    if not samples or cpus <= 0:
        return None, "no CPU sample"
    end, used = samples[-1]
    start = next((s for s in reversed(samples) if s[0] <= now - itval), samples[0])
    if start[0] < end:
        short = start[0] > now - itval * (1 - JITTER)
        note = f"CPU over {(end - start[0]) / MICRO:.3g} s" if short else ""
        return (used - start[1]) * MICRO / (end - start[0]) / cpus, note
    if track.started is not None and track.started < end:
        return used * MICRO / (end - track.started) / cpus, "CPU averaged since its start"
    return None, "no CPU sample"
