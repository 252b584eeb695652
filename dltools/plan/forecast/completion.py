"""When a host's jobs will end, by how they share its CPUs.

A job is what it still needs, in CPU seconds, and how many CPUs it can use. Either all jobs share
the CPUs equally, or tiers of jobs run in order: the first that fit the CPUs run, and the others
have what these leave. In between lies an order of the first jobs after which the rest shares: it
ends as many jobs early, and leaves no CPU idle at the end. Between two ends nothing changes.
`contention_law` says what a job loses that has a part of the CPUs that it could use.

What came true is compared with what was forecast: see `Forecasts`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from dltools.notation.times import MICRO
from dltools.plan.forecast.contention_law import useful_part

_EPSILON = 1e-9


class Prospect(NamedTuple):
    """A job: the useful CPU seconds that it still needs (infinity for a job without an end), how
    many CPUs it can use, and the exponent of what it loses by having fewer."""

    left: float
    cpus: float
    exponent: float = 0.0

    def speed(self, cores: float) -> float:
        """Return the useful CPU seconds per second with these cores."""
        return max(_EPSILON, cores * useful_part(cores / self.cpus, self.exponent))


def equal_parts(needs: Iterable[tuple[float, int]], cpus: float) -> dict[float, float]:
    """Return how many CPUs a job has that can use so many, where jobs share a host equally and none
    has more than it can use. `needs`: (CPUs that a job can use, number of such jobs)."""
    kinds = sorted(needs)
    left, number = cpus, sum(count for _, count in kinds)
    parts = {}
    for need, count in kinds:
        parts[need] = min(need, max(0.0, left) / number)
        left -= parts[need] * count
        number -= count
    return parts


def side_by_side(jobs: Sequence[Prospect], cpus: float) -> list[float]:
    """Return in how many seconds each job ends where all share a host's CPUs equally."""
    ends = [math.inf] * len(jobs)
    kinds: dict[tuple[float, float], list[int]] = {}
    for at in sorted(range(len(jobs)), key=lambda at: -jobs[at].left):
        kinds.setdefault(jobs[at][1:], []).append(at)
    done = dict.fromkeys(kinds, 0.0)  # by each job of a kind, so far
    clock = 0.0
    while kinds:
        parts = equal_parts(((kind[0], len(group)) for kind, group in kinds.items()), cpus)
        rates = {kind: jobs[group[-1]].speed(parts[kind[0]]) for kind, group in kinds.items()}
        span, first = min(
            ((jobs[group[-1]].left - done[kind]) / rates[kind], kind)
            for kind, group in kinds.items()
        )
        if not math.isfinite(span):
            break
        clock += max(0.0, span)
        for kind in kinds:
            done[kind] += rates[kind] * span
        ends[kinds[first].pop()] = clock
        if not kinds[first]:
            del kinds[first]
    return ends


def in_order(
    jobs: Sequence[Prospect], tiers: Sequence[Sequence[int]], cpus: float, rests: Iterable[int]
) -> Iterator[list[float]]:
    """Yield in how many seconds each job ends where tiers of jobs (indices) run in this order, the
    jobs of a tier in turns, until so many are left, which share equally: for each of `rests`, the
    fewest first."""
    ends = [math.inf] * len(jobs)
    left = [job.left for job in jobs]
    waiting = [list(tier) for tier in tiers]
    clock, count = 0.0, len(jobs)
    at_rest = []
    for rest in sorted(rests, reverse=True):
        while count > rest:
            rates = _rates(jobs, waiting, cpus)
            span, first = min((left[at] / rate, at) for at, rate in rates.items())
            if not math.isfinite(span):
                break
            clock += span
            for at, rate in rates.items():
                left[at] = max(0.0, left[at] - rate * span)
            ends[first] = clock
            count -= 1
            tier = next(tier for tier in waiting if first in tier)
            tier.remove(first)
            if not tier:
                waiting.remove(tier)
        later = {at: jobs[at]._replace(left=left[at]) for tier in waiting for at in tier}
        at_rest.append((clock, list(ends), later))
    for since, found, later in reversed(at_rest):
        shared = side_by_side(list(later.values()), cpus)
        for at, end in zip(later, shared, strict=True):
            found[at] = since + end
        yield found


def _rates(
    jobs: Sequence[Prospect], tiers: Iterable[Sequence[int]], cpus: float
) -> dict[int, float]:
    """Return the speeds of the jobs that run, by index. The first tiers that fit have all that they
    can use; what they leave goes to the next ones."""
    rates: dict[int, float] = {}
    beside: list[Sequence[int]] = []
    room = cpus
    for tier in tiers:
        if room <= _EPSILON:
            break
        if not rates or sum(jobs[at].cpus for at in tier) <= room + _EPSILON:
            room -= _share(jobs, tier, room, rates)
        else:
            beside.append(tier)
    for tier in beside:
        if room <= _EPSILON:
            break
        room -= _share(jobs, tier, room, rates)
    return rates


def _share(
    jobs: Sequence[Prospect], tier: Sequence[int], cpus: float, rates: dict[int, float]
) -> float:
    """Share CPUs among the jobs of a tier, which take turns; return how many they use."""
    if len(tier) == 1:
        job = jobs[tier[0]]
        part = min(job.cpus, cpus)
        rates[tier[0]] = job.speed(part)
        return part
    parts = equal_parts(Counter(jobs[at].cpus for at in tier).items(), cpus)
    rates.update((at, max(_EPSILON, parts[jobs[at].cpus])) for at in tier)
    return math.fsum(parts[jobs[at].cpus] for at in tier)


_NEWEST = 15
"""Number of ended jobs whose errors count (ours)."""

_LEAST_S = 10.0
"""The shortest forecast (s) that is compared: samples are too far apart for less."""


@dataclass(frozen=True, slots=True)
class Forecasts:
    """What was forecast for a host's jobs, and how wrong that was.

    `arrangement`: the one for which it was made, "" for none; `made`: when (microseconds); `ends`:
    when jobs were to end, by run (microseconds). `errors`: of the newest jobs that have ended, as
    parts of the time from the forecast to their end.
    """

    arrangement: str = ""
    made: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[float, ...] = ()

    @property
    def error(self) -> float | None:
        """The median error, None before three jobs have ended."""
        return median(self.errors) if len(self.errors) > 2 else None

    def after(self, now: int, arrangement: str, left_s: Mapping[str, float | None]) -> Forecasts:
        """Return it after a look at the running jobs. `left_s`: in how many seconds each ends, None
        where that is unknown. Forecasts stand until a job arrives, becomes known, or the
        arrangement changes."""
        known = {run: seconds for run, seconds in left_s.items() if seconds is not None}
        ended = [
            abs(now - end) / (now - self.made)
            for run, end in sorted(self.ends.items())
            if run not in left_s and now - self.made >= _LEAST_S * MICRO
        ]
        errors = (*self.errors, *ended)[-_NEWEST:]
        if arrangement == self.arrangement and known.keys() <= self.ends.keys():
            ends = {run: end for run, end in self.ends.items() if run in left_s}
            return Forecasts(arrangement, self.made, ends, errors)
        ends = {run: now + round(seconds * MICRO) for run, seconds in known.items()}
        return Forecasts(arrangement, now, ends, errors)
