"""Which mode suits a host: whether its jobs run in the policy's order, in equal turns, or all side
by side. The one is taken by which they are forecast to end soonest in the mean.

Where CPUs are idle, or all jobs fit, or somebody serves, no job waits. An order is taken only where
the last job ends hardly later by it, and it wins more than it has lost so far, measured against an
imagined host that Docker shares alone (`promise`). A job of unknown length is taken to need as much
as it has had, which is the best guess where lengths have heavy tails, or less by its curve. All of
it is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import fmean

from dltools.notation.times import MICRO
from dltools.plan.forecast.completion import Forecasts, Prospect, in_order, sharing_equally
from dltools.plan.forecast.contention_law import spin_exponent
from dltools.plan.forecast.promise import LAST, DockerAlone
from dltools.plan.policy.interface import HostState
from dltools.plan.realisation.contention import Contention, spins
from dltools.plan.realisation.feeders import CpusLeft
from dltools.plan.realisation.mode import (
    OTHERS,
    SHORTEST,
    WINS,
    Comparison,
    Mode,
    ModeChoice,
    RealisationOptions,
)
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
from dltools.plan.signals.prediction import length_left, remaining

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

    Where a job does not fit beside those that feed a GPU, and go first, weights order nothing: when
    a feeder waits for its GPU, its CPU takes a thread of one that waits, and the first keeps both
    its threads on one CPU. On two CPUs three trainings had 5 steps a second by weights of 1024, 10
    and 2, 15 by equal ones, and the first alone 30 to 45 (measured). There jobs take turns.
    """
    now = host.sampled_at or 0
    awake = [job for job in (*host.jobs, *silent) if not job.use.is_idle]
    is_first = options.queue.feeders == "first"
    feeding = [job for job in awake if is_first and job.use.is_feeder(now)]
    everyone = [job for job in awake if job not in feeding]
    feeding = [job for job in feeding if not is_serving(job)]
    room = host.cpus - cpus_together(feeding, host.cpus)
    fits = not feeding or all(needed_cpus(job) <= room for job in everyone)

    def choice(mode: Mode, why: str, *, is_even: bool = False) -> ModeChoice:
        return ModeChoice(mode, why, options.quantum_s, options.queue, is_even, weights_order=fits)

    nothing = _nothing_to_win(host, everyone)
    if options.mode is not None:
        is_even = bool(nothing) and options.mode in (Mode.PRIORITY, Mode.ROTATE)
        return choice(
            options.mode, f"as asked; {nothing}" if is_even else "as asked", is_even=is_even
        )
    if nothing:
        return choice(Mode.WEIGHT, nothing, is_even=True)
    threads = sum(needed_cpus(job) for job in everyone)
    jobs = "1 job" if len(everyone) == 1 else f"{len(everyone)} jobs"
    most = "up to " if any(map(may_keep_fewer_busy, everyone)) else ""
    crowded = f"{most}{threads:g} busy threads of {jobs} on {host.cpus:g} CPUs"
    if any(is_serving(job) for job in host.jobs):
        return choice(Mode.WEIGHT, "some containers serve: none may wait for a turn")
    if threads <= host.cpus or len(everyone) < 2:
        return choice(Mode.WEIGHT, f"{crowded}: nothing is lost by competing", is_even=True)
    if not fits and (host.others is None or host.others < OTHERS):
        return choice(Mode.ROTATE, f"{crowded}, beside {len(feeding)} that feed GPUs")
    runs = tuple(job.run_id for job in everyone)
    comparison = outlook.compared
    if comparison is None or not comparison.holds(now, runs):
        comparison = compare(host, everyone, options, outlook)
    left = outlook.cpus_left.count
    spared = f"; {left} CPUs are left to those that feed GPUs" if left else ""
    made = replace(
        choice(Mode.PRIORITY, f"{crowded}: {comparison}{spared}"),
        compared=comparison,
        cpus_left=left,
    )
    if comparison.wins:
        return outlook.contention.choice(made, now)
    if comparison.turns < comparison.beside:
        return outlook.contention.choice(replace(made, are_equal=True), now)
    return replace(made, mode=Mode.WEIGHT, is_even=True, cpus_left=0)


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
    """Compare the policy's order of jobs with turns and with side by side. Jobs that have not
    reported twice go first until they have had `explore` CPU seconds."""
    now, runs = host.sampled_at or 0, tuple(job.run_id for job in jobs)
    alone, before, explore_s = outlook.alone, outlook.compared, options.queue.explore
    shared = _shared(host, jobs, options)
    places = standings(shared)
    order = sorted(jobs, key=lambda job: places[job.id])
    tiers = [
        [at for at, _ in group]
        for _, group in groupby(enumerate(order), key=lambda pair: places[pair[1].id])
    ]
    spin = spins(order, host.cpus)
    lefts = {job.run_id: length_left(job) for job in order}
    prospects = [
        _prospect(job, lefts[job.run_id], shared, explore_s, spin[job.id]) for job in order
    ]
    beside = sharing_equally(prospects, host.cpus)
    in_turns = next(in_order(prospects, [range(len(order))], host.cpus, {0}))
    groups = len(groups_that_fit(order, host.cpus, shared.need))
    packed = min(1.0, math.fsum(prospect.cpus for prospect in prospects) / (groups * host.cpus))
    competing = _lost_by_competing(prospects, beside, host.cpus)
    ends_on_docker = alone.ends(host.cpus)
    last = _last_allowed(alone, ends_on_docker, max(beside))
    is_order = len({place for place in places.values() if place[0] >= 0}) > 1
    ordered = _in_order(prospects, tiers, host.cpus, last) if is_order else None
    turns, lost = [end / packed for end in in_turns], 0.0
    if min(fmean(turns), fmean(ordered or turns)) < fmean(beside):
        lost = max(0.0, alone.lost(ends_on_docker, host.cpus, competing))
    if fmean(turns) >= (1 - _COUNTS * lost) * fmean(beside):
        turns = [math.inf] * len(order)
    best = min(turns, beside, key=fmean)
    part = min(WINS - _COUNTS * lost, 1 - outlook.forecasts.doubt)
    wins = ordered is not None and fmean(ordered) < part * fmean(best)
    if before is not None and before.advises(now, runs):
        shortest, advised = before.shortest, before.advised
    else:
        shortest, advised = _shortest(prospects, host.cpus, last, options), now
    ends = ordered if ordered is not None and wins else best
    return Comparison(
        math.inf if ordered is None else fmean(ordered),
        fmean(turns),
        fmean(beside),
        wins,
        shortest,
        {run: end for run, end in zip(lefts, ends, strict=True) if lefts[run] is not None},
        outlook.forecasts.error,
        now,
        runs,
        advised,
    )


def _lost_by_competing(jobs: Sequence[Prospect], beside: Sequence[float], cpus: float) -> float:
    """Return by what part of the time competing makes jobs end later on average."""
    free = sharing_equally([job._replace(exponent=0.0) for job in jobs], cpus)
    return fmean(beside) / fmean(free) - 1


def _in_order(
    jobs: Sequence[Prospect], tiers: Sequence[Sequence[int]], cpus: float, last: float
) -> list[float] | None:
    """Return when jobs end in order, the last of them side by side as far as they end in time (s);
    None where an order ends them too late."""
    orders = in_order(jobs, tiers, cpus, _rests(len(jobs)))
    return next((ends for ends in orders if max(ends) <= last * (1 + _ROUNDING)), None)


def _shortest(
    jobs: Sequence[Prospect], cpus: float, last: float, options: RealisationOptions
) -> float:
    """Return the mean time until jobs end, ordered by what they still need; infinity where the
    policy orders so itself, or the last would end too late."""
    if options.policy == SHORTEST:
        return math.inf
    order = sorted(range(len(jobs)), key=lambda at: jobs[at].left)
    ends = _in_order(jobs, [[at] for at in order], cpus, last)
    return math.inf if ends is None else fmean(ends)


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


def _prospect(
    job: Job, left: float | None, host: SharedHost, explore_s: float, spin: float
) -> Prospect:
    if left is None:
        guess, left = remaining(job).seconds, max(explore_s, job.use.attained)
        left = left if guess is None else min(guess, left)
    exponent = spin_exponent(busy_threads(job), spin)
    return Prospect(max(_LEAST_LEFT, left), min(host.need(job), host.cpus), exponent)
