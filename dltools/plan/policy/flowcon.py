"""FlowCon: elastic CPU limits on one host, by growth efficiency.

Zheng, Tynes, Gorelick, Mao, Cheng, Hou: FlowCon: Elastic Flow Configuration for Containerized
Deep Learning Applications, ICPP 2019. Classes, transitions, limits, back-off and listeners follow
the authors' published code. The following is ours:

- Limits are not truncated to whole CPUs.
- A job whose growth is unknown does not count as converged. A new job has no limit; a slow job
  keeps its class and limit for four intervals, then counts as new.
- While the growth of any job is unknown, G/S is too large, so completing jobs get only the floor.
- No growing job gets less than the floor (`floor`).
- Until two intervals are over, a new job's growth is taken from its first reports (`early`). They
  do not change its class.
- Only change for the better counts as growth; `signed=false` is the paper's rule.
- The back-off ends at `itval_max`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dltools.notation.times import MICRO
from dltools.plan.policy.interface import (
    Allocation,
    Cluster,
    Decision,
    HostState,
    IntervalChange,
    JobClass,
    Requirements,
    State,
)
from dltools.plan.policy.parameters import parameter, seconds
from dltools.plan.signals.growth import Growth, early_growth, growth, signal_of
from dltools.plan.signals.job import Job

NEW, WATCHING, COMPLETING = "NL", "WL", "CL"
CLASSES = (
    JobClass(NEW, "growing", "new, or its growth efficiency reaches alpha"),
    JobClass(WATCHING, "watching", "slow for one round"),
    JobClass(COMPLETING, "completing", "slow for two rounds or more: it makes room"),
)
_KEPT_INTERVALS = 4
"""Number of intervals for which a slow job of unknown growth keeps its class (ours)."""

_RANKS = {NEW: 0, WATCHING: 1, COMPLETING: 2}
_WORDS = {job_class.name: job_class.word for job_class in CLASSES}


@dataclass(frozen=True, slots=True)
class Parameters:
    """FlowCon's parameters."""

    alpha: float = parameter(
        0.03, "growth efficiency (1/s) below which a job is slow", high=1.0, source="paper"
    )
    itval: float = seconds(30.0, "seconds between two rounds", source="paper")
    itval_max: float = seconds(
        480.0, "longest interval (s) while every job is completing; = itval: no back-off"
    )
    signed: bool = parameter(True, "count only improvement as growth; the paper counts any change")
    floor: bool = parameter(True, "give a growing job at least the minimum of a completing one")
    early: bool = parameter(
        True, "rank a new job by its first reports, until two intervals are over"
    )


class FlowCon:
    """The policy object. It remembers since when the growth of slow jobs has been unknown."""

    name = "flowcon"
    help = "elastic CPU limits by growth efficiency: completing jobs make room (FlowCon, ICPP 2019)"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """A round each interval, which backs off; a history of two intervals."""
        return Requirements(parameters.itval, parameters.itval_max, windows=2, efforts=True)

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Classify every job by its growth efficiency, and limit it by its class."""
        host, remembered = cluster.host, state.get(cluster.host.name) or {}
        growths = {job.id: _growth(job, cluster, parameters) for job in host.jobs}
        unknown = {
            job.run_id: int(remembered.get(job.run_id, cluster.now))
            for job in host.jobs
            if growths[job.id].efficiency is None
        }
        before, classes = dict[str, str](), dict[str, str]()
        for job in host.jobs:
            allocation, rate = host.previous.get(job.id), growths[job.id]
            is_new = allocation is None or _is_forgotten(cluster, unknown.get(job.run_id))
            before[job.id] = NEW if allocation is None or is_new else allocation.job_class
            efficiency = None if rate.is_early else rate.efficiency
            classes[job.id] = transition(before[job.id], efficiency, parameters.alpha)
        memory = {**state, host.name: unknown}
        if all(job_class == COMPLETING for job_class in classes.values()):
            allocations = {key: _alone(rate) for key, rate in growths.items()}
            gain = "none: every job is completing"
            return Decision(allocations, memory, IntervalChange.DOUBLE, gain=gain)
        allocations = {
            key: _allocation(key, job_class, before[key], growths, host, parameters)
            for key, job_class in classes.items()
        }
        return Decision(allocations, memory, gain=_gain(allocations))


FLOWCON = FlowCon()


def _growth(job: Job, cluster: Cluster, parameters: Parameters) -> Growth:
    cpus, now, interval_s = cluster.host.cpus, cluster.now, cluster.interval_s
    rate = growth(job, now, interval_s, cpus, signed=parameters.signed)
    if rate.efficiency is not None or not parameters.early:
        return rate
    early = early_growth(job, now, interval_s, cpus, signed=parameters.signed)
    return rate if early is None or early.efficiency is None else early


def _alone(rate: Growth) -> Allocation:
    """Return what a job gets for which no other makes room."""
    reason = f"all completing, none makes room; {_numbers(rate)}"
    return Allocation(1.0, COMPLETING, reason, signal_of(rate), unlimited=True)


def _allocation(
    key: str,
    job_class: str,
    before: str,
    growths: Mapping[str, Growth],
    host: HostState,
    parameters: Parameters,
) -> Allocation:
    rate, old = growths[key], host.previous.get(key)
    rates = [g.efficiency for g in growths.values() if g.efficiency is not None]
    least = limit(COMPLETING, 0.0, 1.0, len(growths))
    share = limit(job_class, rate.efficiency, math.fsum(rates), len(growths))
    if share is not None and least is not None:
        if job_class == COMPLETING and len(rates) < len(growths):
            share = least
        elif job_class == NEW and parameters.floor:
            share = max(share, least)
    reason = _reason(before, job_class, rate, parameters.alpha, share)
    unlimited = False
    if share is None:
        unlimited = old is None or old.unlimited or (job_class == NEW and rate.efficiency is None)
        share = 1.0 if old is None or unlimited else old.share
    return Allocation(
        share, job_class, reason, signal_of(rate), unlimited=unlimited, rank=_RANKS[job_class]
    )


def _is_forgotten(cluster: Cluster, since: int | None) -> bool:
    """Tell whether growth has been unknown since a time (microseconds) too long ago for the class
    to mean anything."""
    return since is not None and cluster.now - since >= _KEPT_INTERVALS * cluster.interval_s * MICRO


def _gain(allocations: Mapping[str, Allocation]) -> str:
    """Return how many jobs are growing, for which the others make room."""
    growing = sum(allocation.job_class == NEW for allocation in allocations.values())
    if not growing or growing == len(allocations):
        return "none yet: no job makes room for another"
    return f"{growing} of {len(allocations)} jobs growing, and the others make room"


def transition(job_class: str, efficiency: float | None, alpha: float) -> str:
    """Return a job's next class; an unknown growth efficiency changes nothing."""
    if efficiency is None:
        return job_class
    if efficiency >= alpha:
        return NEW
    return {NEW: WATCHING, WATCHING: COMPLETING, COMPLETING: COMPLETING}[job_class]


def limit(job_class: str, efficiency: float | None, total: float, n: int) -> float | None:
    """Return a job's share of the host, or None to keep what it has.

    With S = `total` and beta = 1 + 1/n: CL gets max(G/S, 1/(beta n)), NL min(G/S, 1); WL keeps
    its limit, as do all where S is 0.
    """
    if efficiency is None or total <= 0 or job_class == WATCHING:
        return None
    part = efficiency / total
    if job_class == COMPLETING:
        beta = 1 + 1 / n
        return max(part, 1 / (beta * n))
    return min(part, 1.0)


def _reason(before: str, after: str, rate: Growth, alpha: float, share: float | None) -> str:
    word = _WORDS[after]
    kept = "; share kept" if share is None else ""
    if rate.efficiency is None:
        return f"{word}: {_numbers(rate)}{'' if after == NEW else kept}"
    if rate.is_early:
        return f"{word}: {_numbers(rate)}"
    relation = "<" if rate.efficiency < alpha else ">="
    moved = f" ({before} to {after})" if before != after else ""
    return f"{word}{moved}: {_numbers(rate)} {relation} alpha {alpha:g}{kept}"


def _numbers(rate: Growth) -> str:
    if rate.efficiency is None:
        return f"growth efficiency unknown ({rate.note})"
    note = f" ({rate.note})" if rate.note else ""
    return f"growth efficiency {rate.efficiency:.3g} of {rate.metric}{rate.per}{note}"
