"""DQoES: response-time targets for inference.

Mao et al.: Differentiate Quality of Experience Scheduling for Deep Learning Inferences with Docker
Containers in the Cloud, arXiv 2020. The goal and the classes are the paper's; the constants and
what the docstrings below mark as ours are a reconstruction. The label `dltools.qoe` is a
container's target o in seconds, p its response time over the last interval, q = o - p its quality:

    G over-achieving    q > alpha o
    S satisfied         |q| <= alpha o
    B under-performing  q < -alpha o

With `gain=fixed` a round takes beta L q / Q from each container in G, in proportion to its slack,
and gives the sum to those in B, in proportion to their need. L is a container's share of the host,
Q the sum of q over its class. By default (ours) a round gives each model at once the share that its
response time calls for: a model that used U of the host and took p needs U p / o. U p is the cost
of a request. It changes less than the share does, so it is measured over the last five intervals.
See `direct_shares`.

On devices (ours) U is the part of these that a model uses, and trainings there share what the
targets leave. They get no less than the bound of every job that waits. While no model misses its
target and a device is not all in use, nobody is held back: an idle device wins nobody anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dltools.labels import METRIC
from dltools.notation.times import MICRO
from dltools.observations import judging_metric
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
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.evaluation_metric import has_values
from dltools.plan.signals.growth import cpu_use
from dltools.plan.signals.job import Job

OVER, SATISFIED, UNDER, UNKNOWN = "G", "S", "B", "?"


CLASSES = (
    JobClass(OVER, "over-achieving", "faster than its target by more than alpha"),
    JobClass(SATISFIED, "satisfied", "within alpha of its target"),
    JobClass(UNDER, "under-performing", "slower than its target by more than alpha"),
    JobClass(UNKNOWN, "unknown", "no response time in the last interval"),
)
_WORDS = {job_class.name: job_class.word for job_class in CLASSES}


_COST_INTERVALS = 5
"""Number of intervals over which the cost of a request is measured (ours)."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """DQoES's parameters."""

    alpha: float = parameter(
        0.10, "part of a target within which it counts as met", low=0.001, high=1.0, source="paper"
    )
    beta: float = parameter(
        0.10,
        "fraction of an over-achiever's share that a round takes away",
        low=0.001,
        high=1.0,
        source="paper",
    )
    itval: float = seconds(10.0, "seconds between two rounds")
    itval_max: float = seconds(80.0, "longest interval (s) while nothing changes")
    gain: str = parameter(
        "direct",
        "direct: each model gets what its response time requires; fixed: a round moves beta",
        choices=("direct", "fixed"),
    )


class Dqoes:
    """The policy object; it holds no state of its own."""

    name = "dqoes"
    help = "response-time targets: CPU goes from over-achieving to under-performing models (DQoES)"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """A round each interval, which doubles while no class changes; servers as jobs."""
        windows = _COST_INTERVALS if parameters.gain == "direct" else 1
        return Requirements(
            parameters.itval, parameters.itval_max, windows=windows, silent_jobs=False, servers=True
        )

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Classify the models and move CPU between them."""
        host = cluster.host
        models = _models(host, cluster.now, cluster.interval_s, parameters)
        classes = {model.job.id: model.job_class for model in models}
        waiting = _waiting(host)
        room = 1 - _least_of_waiting(host) * len(waiting)
        if parameters.gain == "direct":
            shares, note = direct_shares(models, parameters.alpha, room)
        else:
            shares, note = exchanged_shares(models, parameters.beta)
        allocations = {job.id: Allocation(None, "-", _why_left_alone(job)) for job in host.jobs}
        is_free = _is_free(host, cluster, models)
        if models and waiting:
            left = (1 - min(room, math.fsum(shares.values()))) / len(waiting)
            left = max(_least_of_waiting(host), _left(left, host.previous, waiting, models))
            trains = Allocation(left, "-", _LEFT, unlimited=is_free)
            allocations |= {job.id: trains for job in waiting}
        for model in models:
            share = shares[model.job.id]
            allocations[model.job.id] = _allocation(model, share, note, is_free=is_free)
        before = {key: given.job_class for key, given in host.previous.items() if key in classes}
        moved = any(abs(shares[m.job.id] - m.share) > 1e-12 for m in models)
        is_settled = not waiting or UNDER not in classes.values()
        interval_change = IntervalChange.KEEP
        if any(old == SATISFIED != classes[key] for key, old in before.items()):
            interval_change = IntervalChange.RESET
        elif models and before == classes and not moved and is_settled:
            interval_change = IntervalChange.DOUBLE
        return Decision(allocations, state, interval_change, gain=_gain(models, note))


DQOES = Dqoes()


def classify(target: float, latency: float | None, alpha: float) -> str:
    """Return a model's class: UNKNOWN if its response time is unknown."""
    if latency is None:
        return UNKNOWN
    quality = target - latency
    if abs(quality) <= alpha * target:
        return SATISFIED
    return OVER if quality > 0 else UNDER


_LEFT = "trains beside servers: shares what their targets leave"

_SCARCE = 0.9
"""Devices of which less is used are not scarce (ours)."""


def _waiting(host: HostState) -> list[Job]:
    """Return the trainings that share devices with the models."""
    return [job for job in host.jobs if not is_serving(job)] if _is_on_devices(host) else []


def _is_on_devices(host: HostState) -> bool:
    return all(job.use.resource.is_device for job in host.jobs)


def _least_of_waiting(host: HostState) -> float:
    """Return the least share of a training that waits: half of an equal one (ours)."""
    return 1 / (2 * max(1, len(host.jobs)))


_GROWTH = 1.1
"""How fast the share of trainings grows again, in a round (ours)."""


def _left(
    left: float, previous: Mapping[str, Allocation], waiting: Sequence[Job], models: Sequence[Model]
) -> float:
    """Return the share of each training of what the targets leave. A model that is held back by
    nothing has at most as much as each of them: so they give as long as one misses its target."""
    free = [model for model in models if not model.job.use.is_slowed]
    slowest = max(((model.latency or 0.0) / model.target for model in free), default=0.0)
    before = [
        allocation.share
        for job in waiting
        if (allocation := previous.get(job.id)) and allocation.share
    ]
    if len(before) < len(waiting):
        return left
    if any(model.job_class == UNDER for model in free):
        return min(left, max(0.5, 1 / slowest) * min(before))
    return min(left, min(before) * (_GROWTH if slowest <= 1 else 1.0))


def _is_free(host: HostState, cluster: Cluster, models: Sequence[Model]) -> bool:
    """Tell whether nobody need be held back on devices: no model misses its target, and these
    are not all in use, or no other job is there."""
    if not _is_on_devices(host):
        return False
    span = max(1, round(cluster.interval_s * MICRO))
    used = sum(_used(job, cluster.now, span) for job in host.jobs)
    if any(model.job_class in (UNDER, UNKNOWN) for model in models):
        return len(host.jobs) < 2
    return not any(job.use.is_slowed for job in host.jobs) and used < _SCARCE * host.cpus


def _used(job: Job, now: int, span: int) -> float:
    """Return how many devices a job has kept busy over a span (microseconds)."""
    begin = max(now - span, job.use.effort_since)
    return (job.use.effort_at(now) - job.use.effort_at(begin)) * MICRO / max(1, now - begin)


def _models(host: HostState, now: int, interval_s: float, parameters: Parameters) -> list[Model]:
    jobs = [
        job for job in host.jobs if job.progress.targets.qoe_s is not None and _latency_metrics(job)
    ]
    shares = _present_shares(host, jobs)
    models, interval = [], round(interval_s * MICRO)
    for job in jobs:
        target = job.progress.targets.qoe_s or 0.0
        metric, latency = _latency(job, now, interval)
        job_class = classify(target, latency, parameters.alpha)
        demand = _demand(job, metric, now, interval, host.cpus)
        models.append(Model(job, job_class, shares[job.id], target, latency, metric, demand))
    return models


def _demand(job: Job, metric: str, now: int, interval: int, cpus: float) -> float | None:
    """Return how long the whole host needs for one request (s), None where that is unknown: CPU use
    times response time, over up to five intervals of `interval` microseconds.

    Where requests follow each other without a gap, CPU use over a span is requests x cost / span,
    and the response time is span / requests. The product is the cost, whatever the shares were.
    """
    first = job.progress.metrics[metric].times[0]
    span = min(max(now - first, interval), _COST_INTERVALS * interval)
    _, latency = _latency(job, now, span)
    used = cpu_use(job, now, span, cpus).share
    if job.use.resource.is_device:
        used = _used(job, now, span) / cpus
    return None if latency is None or used is None else used * latency


def _present_shares(host: HostState, jobs: Sequence[Job]) -> dict[str, float]:
    """Return L of each job: its last share, or 1/n for a new job. After a job has come or gone, all
    shares are scaled to sum to 1 (ours)."""
    n = len(jobs)
    old = {key: allocation.share for key, allocation in host.previous.items()}
    last = {job.id: share for job in jobs if (share := old.get(job.id)) is not None}
    shares = {job.id: last.get(job.id, 1 / n) for job in jobs}
    managed = {key for key, share in old.items() if share is not None}
    total = math.fsum(shares.values())
    if set(shares) == managed or total <= 0:
        return shares
    return {key: share / total for key, share in shares.items()}


def _latency_metrics(job: Job) -> list[str]:
    """Return the metrics that a model may be judged by, best first: the one that the label
    `dltools.metric` names, else its response times. Each has had a finite value."""
    metric = job.labels.get(METRIC)
    if metric:
        return [metric] if has_values(job, metric) else []
    return judging_metric.latencies(name for name in job.progress.metrics if has_values(job, name))


def _latency(job: Job, now: int, interval: int) -> tuple[str, float | None]:
    """Return the metric that a model is judged by, the first that has a value in the last interval
    (microseconds), and its mean there (s), None for none."""
    names = _latency_metrics(job)
    for name in names:
        window = job.progress.metrics[name].window(now - interval, now)
        values = [value for value in window if math.isfinite(value) and value >= 0]
        if values:
            return name, math.fsum(values) / len(values)
    return names[0], None


def _why_left_alone(job: Job) -> str:
    """Return why the policy changes nothing for a job that is no model with a target."""
    if job.progress.targets.qoe_s is None:
        return "no response-time target: left alone"
    named = (name for name in sorted(job.progress.metrics) if has_values(job, name))
    reported = ", ".join(named) or "values that are not finite"
    metric = job.labels.get(METRIC) or "latency"
    return f"no {metric} yet, only {reported}: left alone until it reports one"


def _allocation(model: Model, share: float, note: str, *, is_free: bool) -> Allocation:
    signal, factor = "", None
    if model.latency is not None:
        signal, factor = f"{model.metric} {model.latency:.3g}", model.latency / model.target
    why = (model.job_class, _reason(model, share, note), signal)
    return Allocation(share, *why, unlimited=is_free, factor=factor)


def _reason(model: Model, share: float, note: str) -> str:
    if model.latency is None:
        return f"no {model.metric} in the last interval: share kept"
    word = _WORDS[model.job_class]
    numbers = f"{model.metric} {model.latency:.3g} s, target {model.target:g} s"
    change = share - model.share
    moved = f"; {change:+.2%} of the host" if abs(change) > 1e-12 else ""
    ending = f"; {note}" if note and model.job_class == UNDER else ""
    return f"{word}: {numbers}{moved}{ending}"


def _gain(models: Sequence[Model], note: str) -> str:
    counts: Mapping[str, int] = {
        kind: sum(model.job_class == kind for model in models) for kind in (SATISFIED, OVER, UNDER)
    }
    if not models:
        return "none: no container has a response-time target"
    return (
        f"{counts[SATISFIED]} of {len(models)} satisfied, {counts[OVER]} over, "
        f"{counts[UNDER]} under" + (f"; {note}" if note else "")
    )


_LEAST = 0.1
"""The least share of a model, as a part of an equal share (ours)."""

_FAR = 1.25
"""Nearer than this factor to its target a model is moved by half of the way: a few requests say no
more (ours)."""

_MOST_CORRECTED = 1.5
"""The factor by which a share differs from the need at most: more CPU does not help every model
(ours)."""

_STEADY = 0.03
"""If no share would change by more than this fraction of itself, all shares stay (ours)."""


@dataclass(frozen=True, slots=True)
class Model:
    """A container with a target.

    `target` is o and `latency` is p, in seconds; `metric` names the metric that p comes from.
    `demand`: seconds that the whole host needs for one of its requests, None where unknown.
    """

    job: Job
    job_class: str
    share: float
    target: float
    latency: float | None
    metric: str
    demand: float | None = None

    @property
    def need(self) -> float:
        """The share of the host with which it would meet its target; the present share where its
        demand is unknown."""
        if self.latency is None or not self.demand:
            return self.share
        return min(1.0, self.demand / self.target)

    @property
    def quality(self) -> float:
        """q = o - p in seconds, 0 while p is unknown."""
        return 0.0 if self.latency is None else self.target - self.latency


class NewShares(NamedTuple):
    """The new shares by job id, and a note for the whole host."""

    shares: dict[str, float]
    note: str = ""


def direct_shares(models: Sequence[Model], alpha: float, room: float = 1.0) -> NewShares:
    """Give each model the share that it needs (ours), of the part `room` of the host.

    If the needs sum to at most 1 + `alpha` of it, all are scaled to fit. If they sum to more, the
    smallest needs are met first, and the others share the rest in proportion to their needs. No
    model gets less than a tenth of an equal share. If all shares would nearly stay, none changes.
    """
    if not models:
        return NewShares({})
    floor = _LEAST / len(models)
    needs = {model.job.id: max(floor, model.need) for model in models}
    total = math.fsum(needs.values())
    if total <= room * (1.0 + alpha):
        measured = [model for model in models if model.latency is not None and model.demand]
        shares = {model.job.id: model.share for model in models}
        shares |= {model.job.id: _corrected(model, needs[model.job.id]) for model in measured}
        wanted = math.fsum(shares[model.job.id] for model in measured)
        kept = math.fsum(shares.values()) - wanted
        for model in measured:
            share = shares[model.job.id] * (min(room, total) - kept) / wanted
            shares[model.job.id] = max(floor, share)
        within = "" if total <= room else ", within alpha"
        new_shares = NewShares(shares, f"every target can be met{within}")
    else:
        new_shares = _smallest_first(needs, floor, room)
    old = {model.job.id: model.share for model in models}
    if all(abs(share - old[key]) <= _STEADY * old[key] for key, share in new_shares.shares.items()):
        return NewShares(old, new_shares.note)
    return new_shares


def _corrected(model: Model, need: float) -> float:
    """Return the share of a model that needs so much: the last one, changed by what it brought.

    Weights bring small models more than their part (measured: 0.85 of the response time, where
    large ones had 1.05).
    """
    change = (model.latency or 0.0) / model.target
    if 1 / _FAR < change < _FAR:
        change = math.sqrt(change)
    return min(_MOST_CORRECTED * need, max(need / _MOST_CORRECTED, model.share * change))


def _smallest_first(needs: Mapping[str, float], floor: float, room: float) -> NewShares:
    """Meet the smallest needs, and share what is left in proportion to the others."""
    shares: dict[str, float] = {}
    left, waiting = room, sorted(needs, key=lambda key: (needs[key], key))
    while waiting and needs[waiting[0]] + floor * (len(waiting) - 1) <= left:
        key = waiting.pop(0)
        shares[key] = needs[key]
        left -= needs[key]
    total = math.fsum(needs[key] for key in waiting)
    spare = left - floor * len(waiting)
    shares |= {key: floor + spare * needs[key] / total for key in waiting}
    return NewShares(shares, f"the targets of {len(waiting)} are out of reach")


def exchanged_shares(models: Sequence[Model], beta: float) -> NewShares:
    """Move CPU from over-achieving to under-performing models, as the paper says."""
    shares = {model.job.id: model.share for model in models}
    n = max(1, len(models))
    floor = 1 / (2 * n)
    over = [model for model in models if model.job_class == OVER]
    under = [model for model in models if model.job_class == UNDER]
    if not under:
        return NewShares(shares)
    if not over:
        # Ours: every model misses its target by about the same factor.
        mean = math.fsum(model.share for model in under) / len(under)
        for model in under:
            shares[model.job.id] += beta * (mean - model.share)
        return NewShares(shares, "the targets are jointly out of reach: toward equal shares")
    pool = _take(over, shares, beta, floor)
    need = math.fsum(-model.quality for model in under)
    for model in under:
        given = shares[model.job.id] + pool * -model.quality / need
        shares[model.job.id] = min(1.0, given)
    if pool <= 0:
        return NewShares(shares, "over-achieving models have nothing left to give")
    return NewShares(shares, f"{pool:.2%} of the host moves from {len(over)} to {len(under)}")


def _take(over: Sequence[Model], shares: dict[str, float], beta: float, floor: float) -> float:
    """Take beta L q/Q from each, which leaves it the floor; return the sum."""
    slack = math.fsum(model.quality for model in over)
    pool = 0.0
    for model in over:
        part = beta * model.share * model.quality / slack
        part = max(0.0, min(part, model.share - floor))
        shares[model.job.id] -= part
        pool += part
    return pool
