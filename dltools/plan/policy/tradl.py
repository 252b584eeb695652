"""Two-tier accuracy targets: deliver a model at the first, train on to the second.

After Zheng, Song, Guo, Cui, Gu, Mao, Cheng: Target-based Resource Allocation for Deep Learning
Applications in a Multi-tenancy System (TRADL), HPEC 2019. The goal is the paper's; this rule is our
reconstruction. A job is in phase 1 (P1) until its metric first meets the label
`dltools.target`, in phase 2 (P2) until it meets `dltools.target.final`, in phase 3 (P3) after
that; it never goes back. Meeting the first orders one delivery: the model can go to its clients
while training goes on. Phase 1 comes first, weighted by the CPU seconds that its learning curves
still ask for; phase 2 shares what is left; phase 3 has the floor. A job whose metric has not
appeared in `explore` CPU seconds counts as phase 2 until it appears: its label may be misspelt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dltools.notation.times import format_time, from_micros
from dltools.observations.targets import TargetMet
from dltools.plan.policy.interface import (
    ActionKind,
    Allocation,
    Cluster,
    Decision,
    HostState,
    IntervalChange,
    JobAction,
    JobClass,
    Requirements,
    State,
)
from dltools.plan.policy.parameters import parameter, seconds
from dltools.plan.policy.shares import beta_floor, cap, in_proportion, with_leftover
from dltools.plan.signals.evaluation_metric import candidates, has_values
from dltools.plan.signals.job import Job
from dltools.plan.signals.remaining_effort import Remaining, refit, to_target

FIRST, SECOND, THIRD = "P1", "P2", "P3"
CLASSES = (
    JobClass(FIRST, "before the first target", "its metric has not met dltools.target yet"),
    JobClass(
        SECOND,
        "before the last target",
        "its metric has not met dltools.target.final yet, or it has no target within reach",
    ),
    JobClass(THIRD, "past its targets", "its metric has met all of its targets"),
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """TRADL's parameters."""

    itval: float = seconds(30.0, "seconds between two rounds")
    explore: float = parameter(
        10.0, "CPU seconds for which a job whose metric has not appeared stays in phase 1"
    )
    itval_max: float = seconds(
        480.0, "longest interval (s) while every job is past its targets; = itval: no back-off"
    )


class Tradl:
    """The policy object. It remembers which jobs have been delivered, by host."""

    name = "tradl"
    help = "two-tier accuracy targets: jobs near their first targets go first (after TRADL)"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """A round each interval and whenever a target is met; learning curves."""
        return Requirements(
            parameters.itval, parameters.itval_max, curves=True, targets=True, efforts=True
        )

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Put each job into its phase and share the host among the phases."""
        host = cluster.host
        refit(host.jobs)
        places = {job.id: _place(job, parameters.explore) for job in host.jobs}
        phases = {key: place.phase for key, place in places.items()}
        shares = _shares(host, places)
        allocations = {}
        for job in host.jobs:
            place = places[job.id]
            why = (place.phase, place.reason, _signal(job), place.needs.note)
            allocations[job.id] = Allocation(shares[job.id], *why)
        delivered = state.get(host.name, ())
        met = {job.run_id: job for job in host.jobs if job.progress.met_first is not None}
        actions = tuple(_delivery(job) for run, job in met.items() if run not in delivered)
        past = all(job_phase == THIRD for job_phase in phases.values())
        interval_change = IntervalChange.DOUBLE if past else IntervalChange.KEEP
        kept = {**state, host.name: {run: job.progress.met_first for run, job in met.items()}}
        return Decision(allocations, kept, interval_change, actions, _gain(phases))


TRADL = Tradl()


@dataclass(frozen=True, slots=True)
class _Place:
    """A job's phase, the effort that it still needs there, and why it is in this phase."""

    phase: str
    needs: Remaining
    reason: str


def _place(job: Job, explore: float) -> _Place:
    """Return a job's phase.

    A job is also in phase 2 if it has no target, if its curve ends short of its first target, or if
    its metric does not appear. A job past its only target is in phase 3.
    """
    targets, past = job.progress.targets, Remaining(0.0, "")
    if targets.first is None:
        return _Place(SECOND, Remaining(None, ""), "no target: shares what phase 1 leaves")
    if job.progress.met_first is None:
        return _before_first(job, targets.first, explore)
    if targets.final is None:
        return _Place(THIRD, past, f"target met ({_target(job)}), and no other is set: the floor")
    both = f"({_target(job)}, then {targets.final:g})"
    if job.progress.met_final is not None:
        return _Place(THIRD, past, f"both targets met {both}: the floor")
    needs = to_target(job, targets.final)
    way = f"on its way to {targets.final:g}: {needs.note}"
    return _Place(SECOND, needs, f"first target met ({_target(job)}); {way}")


def _before_first(job: Job, target: float, explore: float) -> _Place:
    metric, use = job.progress.targets.metric, job.use
    if not has_values(job, metric) and use.effort >= explore:
        others = ", ".join(sorted(candidates(job))) or "values that are not finite"
        note = f"no {metric} in {use.effort:.3g} {use.effort_unit}, only {others}"
        reason = f"{note}: competes as phase 2 until it appears"
        return _Place(SECOND, Remaining(math.inf, note), reason)
    needs = to_target(job, target)
    if needs.seconds is not None and math.isinf(needs.seconds):
        return _Place(SECOND, needs, f"out of reach: {needs.note}; competes as phase 2")
    return _Place(FIRST, needs, f"on its way to {_target(job)}: {needs.note}")


def _shares(host: HostState, places: Mapping[str, _Place]) -> dict[str, float]:
    """Return shares that sum to 1, none below 1/(n + 1)."""
    jobs = host.jobs
    floor = beta_floor(len(jobs))
    first, second = (
        [job for job in jobs if places[job.id].phase == phase] for phase in (FIRST, SECOND)
    )
    if not first and not second:
        return {job.id: 1.0 for job in jobs}
    shares = {job.id: floor for job in jobs}
    left = 1.0 - floor * len(jobs)
    for weights in (_weights(first, places), {job.id: 1.0 for job in second}):
        room = {job.id: cap(job, host.cpus) - floor for job in jobs}
        for key, more in in_proportion(weights, left, most=room).items():
            shares[key] += more
            left -= more
    return with_leftover(shares, left)


def _weights(jobs: Sequence[Job], places: Mapping[str, _Place]) -> dict[str, float]:
    """Return weights by the CPU seconds to the first target. Jobs whose time is unknown are taken
    to need the mean of the others."""
    needs = {job.id: places[job.id].needs.seconds for job in jobs}
    times = {key: max(1e-3, need) for key, need in needs.items() if need is not None}
    mean = math.fsum(times.values()) / len(times) if times else 1.0
    return {key: 1 / times.get(key, mean) for key in needs}


def _delivery(job: Job) -> JobAction:
    reason = f"first target met: {_target(job)}"
    return JobAction(ActionKind.DELIVER, job.id, reason, met=_met(job))


def _met(job: Job) -> TargetMet | None:
    """Return the point that met a job's first target, None where it is no longer remembered."""
    targets, at = job.progress.targets, job.progress.met_first
    series = job.progress.metrics.get(targets.metric or "")
    if series is None or at is None or targets.first is None:
        return None
    for time, value in zip(series.times, series.values, strict=True):
        if time == at and math.isfinite(value) and targets.meets(value, targets.first):
            when = format_time(from_micros(time))
            return TargetMet(targets.metric or "", targets.objective, targets.first, value, when)
    return None


def _target(job: Job) -> str:
    targets = job.progress.targets
    sign = ">=" if targets.objective == "max" else "<="
    return f"{targets.metric} {sign} {targets.first:g}"


def _signal(job: Job) -> str:
    metric = job.progress.targets.metric
    if job.progress.targets.first is None or metric is None or not has_values(job, metric):
        return ""
    return f"{metric} {job.progress.metrics[metric].values[-1]:.4g}"


def _gain(phases: Mapping[str, str]) -> str:
    first = sum(job_phase == FIRST for job_phase in phases.values())
    if not first:
        return "none: no job is on its way to a first target"
    return f"{first} of {len(phases)} jobs on their way to a first target go first"
