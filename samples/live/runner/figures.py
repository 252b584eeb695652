"""Figures of the runs of an arm: means over repetitions, and ratios within a repetition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from dltools.observations.outcomes import satisfies
from runner.measured import LiveJob, LiveRun, Measured, Series

LAST_S = 20.0
"""Over how many last seconds the mean of the response times must keep the target."""


@dataclass(frozen=True)
class Figure:
    """The mean of a figure over repetitions, with the least and the largest."""

    mean: float
    least: float
    most: float


def figure(values: Sequence[float | None]) -> Figure | None:
    """Return the figure of what is known, None where nothing is."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return Figure(fmean(known), min(known), max(known)) if known else None


def mean_completion(run: LiveRun) -> float | None:
    """Return the mean of the completion times (s), None where a job with an end has none."""
    found = run.completions
    if not found or any(job.exit_code is not None and job.name not in found for job in run.jobs):
        return None
    return fmean(found.values())


def to_noop(
    measured: Measured, runs: Sequence[LiveRun], of: Callable[[LiveRun], float | None]
) -> Figure | None:
    """Return the ratios to Docker alone, each to the run of the same repetition."""
    bases = {run.repetition: of(run) for run in measured.of_arm("noop")}
    pairs = [(of(run), bases.get(run.repetition)) for run in runs]
    return figure([value / base for value, base in pairs if value is not None and base])


def efficiency(measured: Measured, run: LiveRun) -> float | None:
    """Return the sum of the times alone over the makespan."""
    alone = [measured.alone[job.name].completion for job in run.jobs]
    if run.makespan is None or None in alone:
        return None
    return sum(value for value in alone if value is not None) / run.makespan


def late_reports(measured: Measured, run: LiveRun) -> float | None:
    """Return the largest ratio of a job's first report to its first report alone."""
    pairs = [(job.first_report, measured.alone[job.name].first_report) for job in run.jobs]
    return max((seen / alone for seen, alone in pairs if seen and alone), default=None)


def time_to_first(run: LiveRun) -> float | None:
    """Return the mean time to the first targets (s) of the jobs that met them."""
    found = [job.to_first for job in run.jobs if job.to_first is not None]
    return fmean(found) if found else None


def last_values(run: LiveRun) -> dict[str, float]:
    """Return the last value that each job reported."""
    return {job.name: job.progress[-1][1] for job in run.jobs if job.progress}


def satisfied(run: LiveRun, until: float = math.inf) -> int:
    """Return how many models keep their targets in the mean of the last seconds before a time, at
    most until the first of them ends."""
    means = _last_latencies(run, until)
    return sum(satisfies(mean, target) for mean, target in means)


def met(run: LiveRun) -> int:
    """Return how many models keep their targets at the end, or answer faster."""
    means = _last_latencies(run, math.inf)
    return sum(mean <= 1.1 * target for mean, target in means)


def _last_latencies(run: LiveRun, until: float) -> list[tuple[float, float]]:
    """Return the last mean response time and the target (s) of each server, while all run."""
    found = []
    until = min([until, *(job.latencies[-1][0] for job in run.jobs if job.latencies)])
    for job in run.jobs:
        points = [(time, value) for time, value in job.latencies if time <= until]
        if points and job.target is not None:
            last = points[-1][0]
            mean = fmean(value for time, value in points if time > last - LAST_S)
            found.append((mean, job.target))
    return found


def own_cpu(measured: Measured, run: LiveRun) -> float:
    """Return the share of the host's CPU that our processes used."""
    return run.own_cpu / (run.lasted * measured.cpus)


def useful_work(measured: Measured, run: LiveRun, bins: int) -> tuple[float, list[float]]:
    """Return the length of a bin (s), and for each bin the useful work in it, as a share of what
    the host can do. An epoch's work is spread over the time since the last report."""
    end = max((job.arrival + job.progress[-1][0] for job in run.jobs if job.progress), default=0.0)
    width = end / bins
    done = [0.0] * bins
    for job in run.jobs:
        epoch = _epoch_alone(measured.alone[job.name])
        for begin, finish in _epochs(job) if epoch else ():
            share = epoch * measured.cores[job.name] / measured.cpus / (finish - begin)
            for number in range(int(begin / width), min(bins, math.ceil(finish / width))):
                inside = min(finish, (number + 1) * width) - max(begin, number * width)
                done[number] += share * max(0.0, inside) / width
    return width, done


def _epoch_alone(alone: LiveJob) -> float:
    points: Series = alone.progress
    return (points[-1][0] - points[0][0]) / (len(points) - 1) if len(points) > 1 else 0.0


def _epochs(job: LiveJob) -> list[tuple[float, float]]:
    """Return the begins and ends of the epochs, in seconds since the run began."""
    times = [job.arrival, *(job.arrival + time for time, _ in job.progress)]
    return [(begin, end) for begin, end in pairwise(times) if end > begin]


def simulated_mean(measured: Measured, arm: str) -> Figure | None:
    """Return the simulated means (s) of the jobs that ended live."""
    return _simulated(measured, arm, lambda ends, _: fmean(ends.values()))


def simulated_makespan(measured: Measured, arm: str) -> Figure | None:
    """Return the simulated makespans (s) of the jobs that ended live."""
    return _simulated(
        measured,
        arm,
        lambda ends, arrivals: max(arrivals[name] + seconds for name, seconds in ends.items()),
    )


def simulated_completion(measured: Measured, arm: str, job: str) -> Figure | None:
    """Return the simulated completion times (s) of a job."""
    return figure([found.get(job) for found in measured.simulated.get(arm, ())])


def _simulated(
    measured: Measured, arm: str, of: Callable[[dict[str, float], dict[str, float]], float]
) -> Figure | None:
    live = measured.of_arm(arm)[0]
    arrivals = {job.name: job.arrival for job in live.jobs}
    found = [
        {name: value for name, value in one.items() if name in live.completions}
        for one in measured.simulated.get(arm, ())
    ]
    return figure([of(ends, arrivals) for ends in found if ends])
