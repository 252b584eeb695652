"""Which mode suits a host: whether its jobs run in the policy's order, in equal turns, or all side
by side. The one is taken by which they are forecast to end soonest in the mean.

Where CPUs are idle, or all jobs fit, or somebody serves, no job waits. An order is taken only where
the last job ends hardly later by it, and it wins more than it has lost so far, measured against an
imagined host that Docker shares alone (`docker_alone`). A job of unknown length is taken to need as
much as it has had, which is the best guess where lengths have heavy tails, or less by its curve.
All of it is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from dltools.notation.times import MICRO
from dltools.plan.forecast.completion import Forecasts, Prospect, in_order, sharing_equally
from dltools.plan.forecast.contention_law import spin_exponent
from dltools.plan.forecast.docker_alone import LAST, DockerAlone
from dltools.plan.policy.interface import HostState
from dltools.plan.realisation.contention import Contention, spins
from dltools.plan.realisation.feeders import CpusLeft
from dltools.plan.realisation.mode import OTHERS, SHORTEST, WINS, Comparison, ModeChoice
from dltools.plan.realisation.options import ORDERED, Mode, RealisationOptions
from dltools.plan.realisation.order import groups_that_fit, standings
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.realisation.shared_host import SharedHost, allocations_of
from dltools.plan.signals.busy_threads import (
    busy_threads,
    cpus_together,
    is_serving,
    may_keep_fewer_busy,
    needed_cpus,
)
from dltools.plan.signals.job import Job
from dltools.plan.signals.remaining_effort import length_left, remaining

_COUNTS = 2.0
"""How many times what an order, or turns, have lost counts against what they are forecast to win
(ours): the part of all job seconds that is lost, beyond what competing would cost, as the imagined
host loses nothing by it."""

_ROUNDING = 1e-6
"""Two sums of the same times differ by less than this part."""

_LEAST_LEFT = 1.0
"""Least effort that a job is taken to need (CPU seconds)."""


@dataclass(slots=True)
class Outlook:
    """What arrangements of a host's jobs are judged by."""

    alone: DockerAlone = field(default_factory=DockerAlone)
    """What Docker alone would have done."""

    contention: Contention = field(default_factory=Contention)
    """What was found of jobs that compete, and whether those that wait disturb the first."""

    cpus_left: CpusLeft = field(default_factory=CpusLeft)
    """What jobs leave to those that feed GPUs."""

    forecasts: Forecasts = field(default_factory=Forecasts)
    """When jobs were to end, and how wrong that was lately."""

    compared: Comparison | None = None
    """The last comparison, which is made anew when it no longer holds; None before one."""


def choose_mode(
    options: RealisationOptions, host: HostState, silent: Sequence[Job], outlook: Outlook
) -> ModeChoice:
    """Return the mode for a host: the one asked for, else the one that ends its jobs soonest.

    `silent` jobs, which have reported nothing yet, count too. Those that feed a GPU do not wait.
    """
    feeding, jobs = _feeding_and_others(options, host, silent)
    fits = _fit_beside(feeding, jobs, host.cpus)
    choice = ModeChoice(
        Mode.WEIGHT, "as asked", options.quantum_s, options.queue, weights_order=fits
    )
    nothing = _nothing_to_win(host, jobs)
    if options.mode is not None:
        is_even = bool(nothing) and options.mode in ORDERED
        why = f"as asked; {nothing}" if is_even else "as asked"
        return replace(choice, mode=options.mode, why=why, is_even=is_even)
    if nothing:
        return replace(choice, why=nothing, is_even=True)
    if any(is_serving(job) for job in host.jobs):
        return replace(choice, why="some containers serve: none may wait for a turn")
    threads = sum(needed_cpus(job) for job in jobs)
    crowded = f"{_in_words(threads, jobs)} on {host.cpus:g} CPUs"
    if threads <= host.cpus or len(jobs) < 2:
        return replace(choice, why=f"{crowded}: nothing is lost by competing", is_even=True)
    if not fits and (host.others is None or host.others < OTHERS):
        why = f"{crowded}, beside {len(feeding)} that feed GPUs"
        return replace(choice, mode=Mode.ROTATE, why=why)
    return _soonest(replace(choice, mode=Mode.PRIORITY, why=crowded), host, jobs, options, outlook)


def _feeding_and_others(
    options: RealisationOptions, host: HostState, silent: Sequence[Job]
) -> tuple[list[Job], list[Job]]:
    """Return the trainings that feed a GPU, and the jobs that compete for the CPUs."""
    now, is_first = host.sampled_at or 0, options.queue.feeders == "first"
    feeding, others = list[Job](), list[Job]()
    for job in (*host.jobs, *silent):
        if not job.use.is_idle:
            is_feeder = is_first and job.use.is_feeder(now)
            (feeding if is_feeder else others).append(job)
    return [job for job in feeding if not is_serving(job)], others


def _fit_beside(feeding: Sequence[Job], jobs: Sequence[Job], cpus: float) -> bool:
    """Tell whether each job fits the CPUs beside all that feed a GPU; else weights cannot order the
    jobs, and they take turns.

    A feeder that waits for its GPU leaves its CPU to a thread of a job that waits in the queue, and
    then both threads of the first job run on one CPU. On two CPUs, three trainings made 5 steps a
    second with weights of 1024, 10 and 2, and 15 with equal weights. The first alone made 30 to 45
    (measured).
    """
    room = cpus - cpus_together(feeding, cpus)
    return not feeding or all(needed_cpus(job) <= room for job in jobs)


def _in_words(threads: float, jobs: Sequence[Job]) -> str:
    number = "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"
    most = "up to " if any(map(may_keep_fewer_busy, jobs)) else ""
    return f"{most}{threads:g} busy threads of {number}"


def _soonest(
    choice: ModeChoice,
    host: HostState,
    jobs: Sequence[Job],
    options: RealisationOptions,
    outlook: Outlook,
) -> ModeChoice:
    """Return the choice for jobs that compete, with the arrangement that ends them soonest."""
    now, left = host.sampled_at or 0, outlook.cpus_left.count
    comparison = outlook.compared
    if comparison is None or not comparison.holds(now, tuple(job.run_id for job in jobs)):
        comparison = compare(host, jobs, options, outlook)
    spared = f"; {left} CPUs are left to those that feed GPUs" if left else ""
    choice = replace(choice, why=f"{choice.why}: {comparison}{spared}", compared=comparison)
    if not comparison.wins and comparison.turns >= comparison.beside:
        return replace(choice, mode=Mode.WEIGHT, is_even=True)
    choice = replace(choice, cpus_left=left, are_equal=not comparison.wins)
    return outlook.contention.choice(choice, now)


def _nothing_to_win(host: HostState, everyone: Sequence[Job]) -> str:
    """Return why no job need wait, "" where CPUs are contested or that is unknown.

    Jobs that take turns leave CPUs idle by that: there, what they need together counts.
    """
    if host.is_contested is not False or host.busy_share is None:
        return ""
    takes_turns = any(job.in_force.turn_s is not None for job in everyone)
    if takes_turns and sum(needed_cpus(job) for job in everyone) > host.cpus:
        return ""
    return f"CPUs {100 * host.busy_share:.0f} % busy: nothing to gain"


def compare(
    host: HostState, jobs: Sequence[Job], options: RealisationOptions, outlook: Outlook
) -> Comparison:
    """Compare the policy's order of jobs with turns and with side by side."""
    now, runs = host.sampled_at or 0, tuple(job.run_id for job in jobs)
    alone, before, line = outlook.alone, outlook.compared, _line(host, jobs, options)
    ends_on_docker, beside = alone.ends(host.cpus), line.beside
    last = _last_allowed(alone, ends_on_docker, max(beside))
    ordered, turns, lost = line.ordered(last), line.in_turns(), 0.0
    if min(fmean(turns), fmean(ordered)) < fmean(beside):
        lost = max(0.0, alone.lost(ends_on_docker, host.cpus, line.lost_by_competing()))
    if fmean(turns) >= (1 - _COUNTS * lost) * fmean(beside):
        turns = _never(turns)
    best = min(turns, beside, key=fmean)
    part = min(WINS - _COUNTS * lost, 1 - outlook.forecasts.doubt)
    wins = fmean(ordered) < part * fmean(best)
    comparison = Comparison(
        fmean(ordered),
        fmean(turns),
        fmean(beside),
        wins,
        ends_s=line.of_known_length(ordered if wins else best),
        error=outlook.forecasts.error,
        made=now,
        runs=runs,
    )
    if before is not None and before.advises(now, runs):
        return replace(comparison, shortest=before.shortest, advised=before.advised)
    return replace(comparison, shortest=_shortest(line, last, options), advised=now)


class _Line(NamedTuple):
    """A host's jobs in the policy's order.

    `left`: the CPU seconds that each still needs, by run, None where that is unknown. `tiers`: the
    indices of jobs that are equals. `is_order`: the policy tells jobs apart that do not explore.
    `groups`: number of those that fit the CPUs. `beside`: when jobs end side by side (s).
    """

    left: dict[str, float | None]
    prospects: list[Prospect]
    cpus: float
    tiers: list[list[int]]
    is_order: bool
    groups: int
    beside: list[float]

    def ordered(self, last: float) -> list[float]:
        """Return when jobs end in this order (s), as `in_time`; infinity where there is none."""
        return self.in_time(self.tiers, last) if self.is_order else _never(self.prospects)

    def in_time(self, tiers: Sequence[Sequence[int]], last: float) -> list[float]:
        """Return when jobs end in order, the last of them side by side as far as they end in time
        (s); infinity where an order ends them too late."""
        rests = _rests(len(self.prospects))
        orders = in_order(self.prospects, tiers, self.cpus, rests)
        in_time = (ends for ends in orders if max(ends) <= last * (1 + _ROUNDING))
        return next(in_time, _never(self.prospects))

    def in_turns(self) -> list[float]:
        """Return when jobs end in equal turns (s), of groups that leave some CPUs idle."""
        ends = next(in_order(self.prospects, [range(len(self.prospects))], self.cpus, {0}))
        needs = math.fsum(prospect.cpus for prospect in self.prospects)
        packed = min(1.0, needs / (self.groups * self.cpus))
        return [end / packed for end in ends]

    def lost_by_competing(self) -> float:
        """Return by what part of the time competing makes jobs end later on average."""
        free = sharing_equally([job._replace(exponent=0.0) for job in self.prospects], self.cpus)
        return fmean(self.beside) / fmean(free) - 1

    def of_known_length(self, ends: Sequence[float]) -> dict[str, float]:
        """Return when jobs of known length end, by run."""
        runs = zip(self.left, ends, strict=True)
        return {run: end for run, end in runs if self.left[run] is not None}


def _line(host: HostState, jobs: Sequence[Job], options: RealisationOptions) -> _Line:
    shared = _shared(host, jobs, options)
    places = standings(shared)
    order = sorted(jobs, key=lambda job: places[job.id])
    tiers = groupby(range(len(order)), key=lambda at: places[order[at].id])
    spin = spins(order, host.cpus)
    left = {job.run_id: length_left(job) for job in order}
    prospects = [_prospect(job, left[job.run_id], shared, spin[job.id]) for job in order]
    return _Line(
        left,
        prospects,
        host.cpus,
        [list(tier) for _, tier in tiers],
        len({place for place in places.values() if place[0] >= 0}) > 1,
        len(groups_that_fit(order, host.cpus, shared.need)),
        sharing_equally(prospects, host.cpus),
    )


def _never(jobs: Sequence[object]) -> list[float]:
    return [math.inf] * len(jobs)


def _shortest(line: _Line, last: float, options: RealisationOptions) -> float:
    """Return the mean time until jobs end, ordered by what they still need; infinity where the
    policy orders so itself, or the last would end too late."""
    if options.policy == SHORTEST:
        return math.inf
    order = sorted(range(len(line.prospects)), key=lambda at: line.prospects[at].left)
    return fmean(line.in_time([[at] for at in order], last))


def _last_allowed(alone: DockerAlone, ends: Mapping[str, int], beside: float) -> float:
    """Return in how many seconds the last job must have ended: hardly later, from the first one's
    arrival on, than on the imagined host, or than side by side from now on, which is later where
    others use CPUs and epochs have become longer."""
    passed = (alone.at - alone.since) / MICRO
    last = (max(ends.values(), default=alone.at) - alone.at) / MICRO
    return LAST * (passed + max(last, beside)) - passed


def _rests(jobs: int) -> set[int]:
    """Return after how many jobs left an order may end: the fewer, the sooner the others end."""
    return {0, 1, 2, 3, 4, jobs // 8, jobs // 4, jobs // 2} & set(range(jobs))


def _shared(host: HostState, jobs: Sequence[Job], options: RealisationOptions) -> SharedHost:
    """Return what the policy's order of jobs would be made from."""
    explore_s = options.queue.explore
    return SharedHost(
        ModeChoice(Mode.PRIORITY, "", queue=options.queue),
        list(jobs),
        allocations_of(jobs, host.previous),
        host.cpus,
        (),
        Queue(),
        host.sampled_at or 0,
        frozenset(job.id for job in jobs if job.progress.explores(job.use.attained, explore_s)),
    )


def _prospect(job: Job, left: float | None, host: SharedHost, spin: float) -> Prospect:
    if left is None:
        explore_s = host.choice.queue.explore
        guess, left = remaining(job).seconds, max(explore_s, job.use.attained)
        left = left if guess is None else min(guess, left)
    exponent = spin_exponent(busy_threads(job), spin)
    cpus = min(host.need(job), host.cpus)
    return Prospect(max(_LEAST_LEFT, left), cpus, exponent, job.owner.ratio)
