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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean, median
from typing import NamedTuple

from dltools.notation.times import MICRO
from dltools.plan.forecast.contention_law import useful_part

_EPSILON = 1e-9


class Prospect(NamedTuple):
    """A job whose end is forecast."""

    left: float
    """The useful CPU seconds that it still needs, infinity for a job without an end."""

    cpus: float
    """How many CPUs it can use."""

    exponent: float = 0.0
    """Of `contention_law`, for what it loses by having fewer CPUs; 0 where it loses nothing."""

    weight: float = 1.0
    """What its owner asked for, as a multiple of the default: the CPUs are shared by it."""

    def speed(self, cores: float) -> float:
        """Return the useful CPU seconds per second with these cores."""
        useful = useful_part(cores / self.cpus, self.exponent) if self.exponent else 1.0
        return max(_EPSILON, cores * useful)


def equal_parts(needs: Sequence[tuple[float, float]], cpus: float) -> list[float]:
    """Return how many CPUs each job of a kind has for a weight of 1, where jobs share a host by
    weight and none has more than it can use. `needs`: (CPUs that a job can use, by its weight; the
    sum of the weights of such jobs), in order."""
    left, weights = cpus, sum(weight for _, weight in needs)
    parts = []
    for need, weight in needs:
        parts.append(min(need, max(0.0, left) / weights))
        left -= parts[-1] * weight
        weights -= weight
    return parts


@dataclass(slots=True, eq=False)
class _Alike:
    """Jobs of a tier that can use as many CPUs and lose as much by having fewer: `one` of them, the
    indices of all, the one that ends first last, and what each has `had` so far."""

    one: Prospect
    waiting: list[int]
    had: float = 0.0


@dataclass(slots=True, eq=False)
class _Tier:
    """Jobs that share what they have: `in_turns` each has all that it can use for the same part of
    the time, all at once each has as many CPUs; `number`: of them; `cpus`: how many they can use
    together."""

    groups: list[_Alike]
    number: int
    cpus: float
    in_turns: bool

    def speeds(self, cpus: float) -> list[tuple[_Tier, _Alike, float]]:
        """Return how fast each job runs with these CPUs."""
        if cpus >= self.cpus - _EPSILON:
            return [(self, group, group.one.cpus) for group in self.groups]
        if self.in_turns and self.number > 1:
            part = max(_EPSILON, cpus) / self.cpus
            return [(self, group, group.one.cpus * part) for group in self.groups]
        kinds = [(group.one, len(group.waiting)) for group in self.groups]
        needs = [(one.cpus / one.weight, one.weight * count) for one, count in kinds]
        pairs = zip(self.groups, equal_parts(needs, cpus), strict=True)
        return [(self, group, group.one.speed(group.one.weight * part)) for group, part in pairs]


def _tier(jobs: Sequence[Prospect], indices: Iterable[int], *, in_turns: bool) -> _Tier:
    kinds: dict[tuple[float, float, float], list[int]] = {}
    for at in sorted(indices, key=lambda at: -jobs[at].left):
        kinds.setdefault(jobs[at][1:], []).append(at)
    groups = [_Alike(jobs[waiting[0]], waiting) for waiting in kinds.values()]
    groups.sort(key=lambda group: (group.one.cpus / group.one.weight, group.one[1:]))
    cpus = math.fsum(group.one.cpus * len(group.waiting) for group in groups)
    return _Tier(groups, sum(map(len, kinds.values())), cpus, in_turns)


def sharing_equally(jobs: Sequence[Prospect], cpus: float) -> list[float]:
    """Return in how many seconds each job ends where all share a host's CPUs, by weight."""
    ends = [math.inf] * len(jobs)
    tier = _tier(jobs, range(len(jobs)), in_turns=False)
    for at, end in _course(jobs, [tier], cpus):
        ends[at] = end
    return ends


def in_order(
    jobs: Sequence[Prospect], tiers: Sequence[Sequence[int]], cpus: float, rests: Iterable[int]
) -> Iterator[list[float]]:
    """Yield in how many seconds each job ends where tiers of jobs (indices) run in this order, the
    jobs of a tier in turns, until so many are left, which share equally: for each of `rests`, the
    fewest first."""
    ends = [math.inf] * len(jobs)
    line = [_tier(jobs, tier, in_turns=True) for tier in tiers]
    course = _course(jobs, line, cpus)
    clock, number = 0.0, len(jobs)
    at_rest = []
    for rest in sorted(rests, reverse=True):
        for at, end in islice(course, max(0, number - rest)):
            ends[at] = clock = end
        number = min(number, rest)
        had = {at: group.had for tier in line for group in tier.groups for at in group.waiting}
        at_rest.append((clock, list(ends), had))
    for since, times, had in reversed(at_rest):
        later = [jobs[at]._replace(left=jobs[at].left - had[at]) for at in had]
        for at, end in zip(had, sharing_equally(later, cpus) if later else (), strict=True):
            times[at] = since + end
        yield times


def _course(
    jobs: Sequence[Prospect], tiers: list[_Tier], cpus: float
) -> Iterator[tuple[int, float]]:
    """Yield which job ends next, and in how many seconds. Tiers are what is left of them by then;
    those whose jobs have ended are removed."""
    clock = 0.0
    while True:
        running = _running(tiers, cpus)
        span, ends = math.inf, None
        for runner in running:
            _, group, speed = runner
            left = (jobs[group.waiting[-1]].left - group.had) / speed
            if left < span:
                span, ends = left, runner
        if ends is None:
            return
        clock += span
        for _, group, speed in running:
            group.had += speed * span
        tier, group, _ = ends
        tier.cpus -= group.one.cpus
        tier.number -= 1
        at = group.waiting.pop()
        if not group.waiting:
            tier.groups.remove(group)
        if not tier.groups:
            tiers.remove(tier)
        yield at, clock


def _running(tiers: Iterable[_Tier], cpus: float) -> list[tuple[_Tier, _Alike, float]]:
    """Return the jobs that run, and their speeds: the first tiers that fit have all that they can
    use, and the first that does not fit has what these leave."""
    running: list[tuple[_Tier, _Alike, float]] = []
    beside = None
    room = cpus
    for tier in tiers:
        if room <= _EPSILON:
            return running
        if tier.cpus <= room + _EPSILON:
            running += [(tier, group, group.one.cpus) for group in tier.groups]
            room -= tier.cpus
        else:
            beside = beside or tier
            if not running:
                break
    return running + beside.speeds(room) if beside and room > _EPSILON else running


_NEWEST = 15
"""Number of ended jobs whose errors count (ours)."""

_LEAST_S = 10.0
"""The shortest forecast (s) that is compared: samples are too far apart for less."""


@dataclass(frozen=True, slots=True)
class Forecasts:
    """What was forecast for a host's jobs, and how wrong that was."""

    arrangement: str = ""
    """The one for which the forecast was made, "" for none."""

    made: int = 0
    """When it was made (microseconds)."""

    ends: Mapping[str, int] = field(default_factory=dict)
    """When jobs were to end, by run (microseconds)."""

    errors: tuple[float, ...] = ()
    """Of the newest jobs that have ended, as parts of the time from the forecast to their end;
    below 0 for one that ended early."""

    @property
    def error(self) -> float | None:
        """How late jobs ended, or how early, in the median; None before three have ended. Two that
        have only changed places make no error."""
        return abs(median(self.errors)) if len(self.errors) > 2 else None

    @property
    def doubt(self) -> float:
        """How much of what an order is forecast to win is in doubt: the error, or how far errors
        are from the middle one in the mean, if that is less. On a machine that has become slower
        all jobs end later, in whatever order. 0 before three have ended."""
        middle = median(self.errors or (0.0,))
        apart = fmean(abs(error - middle) for error in self.errors or (0.0,))
        return min(self.error or 0.0, apart)

    def after(self, now: int, arrangement: str, left_s: Mapping[str, float | None]) -> Forecasts:
        """Return it after a look at the running jobs. `left_s`: in how many seconds each ends, None
        where that is unknown. Forecasts stand until a job arrives, becomes known, or the
        arrangement changes."""
        lengths = {run: seconds for run, seconds in left_s.items() if seconds is not None}
        ended = [
            (now - end) / (now - self.made)
            for run, end in sorted(self.ends.items())
            if run not in left_s and now - self.made >= _LEAST_S * MICRO
        ]
        errors = (*self.errors, *ended)[-_NEWEST:]
        if arrangement == self.arrangement and lengths.keys() <= self.ends.keys():
            ends = {run: end for run, end in self.ends.items() if run in left_s}
            return Forecasts(arrangement, self.made, ends, errors)
        ends = {run: now + round(seconds * MICRO) for run, seconds in lengths.items()}
        return Forecasts(arrangement, now, ends, errors)
