"""DQoES: response-time targets for inference.

Mao et al.: Differentiate Quality of Experience Scheduling for Deep Learning Inferences with Docker
Containers in the Cloud, arXiv 2020. The goal and the classes are the paper's; the constants and
what the docstrings below mark are our reconstruction. The label `dltools.qoe` is a container's
target o in seconds, p its response time over the last interval, q = o - p its quality:

    G over-achieving    q > alpha o
    S satisfied         |q| <= alpha o
    B under-performing  q < -alpha o

With `gain=fixed` a round takes beta L q / Q from each of G, in proportion to its slack, and gives
what it took to B, in proportion to need. L is a container's share of the host, Q the sum of q over
its class. By default (ours) each model gets what its response time asks for at once: a model that
used U of the host and took p needs U p / o. U p is what a request costs, and changes less than the
share does: it is taken over the last five intervals. See `direct_shares`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dltools.labels import METRIC
from dltools.notation.times import MICRO
from dltools.observations import metric_names
from dltools.plan.policy.base import (
    Allocation,
    Cluster,
    Decision,
    HostState,
    IntervalChange,
    JobClass,
    Requirements,
    State,
    Tone,
)
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.dqoes_shares import (
    OVER,
    SATISFIED,
    UNDER,
    UNKNOWN,
    Model,
    Shift,
    direct_shares,
    exchanged_shares,
)
from dltools.plan.policy.evaluation_metric import has_values
from dltools.plan.policy.growth import cpu_use
from dltools.plan.policy.parameters import parameter

CLASSES = (
    JobClass(OVER, "over-achieving", "faster than its target by more than alpha", Tone.DONE),
    JobClass(SATISFIED, "satisfied", "within alpha of its target", Tone.GROWING),
    JobClass(UNDER, "under-performing", "slower than its target by more than alpha", Tone.MISSED),
    JobClass(UNKNOWN, "unknown", "no response time in the last interval"),
)
_WORDS = {one.name: one.word for one in CLASSES}


_MEMORY = 5
"""Over so many intervals the cost of a request is taken (ours)."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """DQoES's parameters."""

    alpha: float = parameter(
        0.10, "part of a target within which it counts as met", low=0.001, high=1.0, source="paper"
    )
    beta: float = parameter(
        0.10,
        "part of an over-achiever's share that a round takes",
        low=0.001,
        high=1.0,
        source="paper",
    )
    itval: float = parameter(
        10.0, "seconds between two rounds", low=0.1, high=86400.0, source="ours"
    )
    itval_max: float = parameter(
        80.0, "longest interval (s) that stability leads to", low=0.1, high=86400.0, source="ours"
    )
    quantile: float = parameter(
        0.0, "judge by this quantile of the window, not its mean (0: mean)", high=1.0, source="ours"
    )
    gain: str = parameter(
        "direct",
        "direct: each model gets what its response time asks for; fixed: a round moves beta; "
        "adaptive: beta grows with the relative error, up to five times",
        choices=("direct", "fixed", "adaptive"),
        worth_trying=("fixed", "adaptive"),
        source="ours",
    )
    trim: bool = parameter(
        False, "while no model misses its target, cut over-achieving models gently", source="ours"
    )


class Dqoes:
    """The policy object; it holds no state of its own."""

    name = "dqoes"
    help = "response-time targets: CPU goes from over-achieving to under-performing models (DQoES)"
    parameters = Parameters
    classes = CLASSES

    def requirements(self, parameters: Parameters) -> Requirements:
        """Windows of the interval, which doubles while the classes stay."""
        windows = _MEMORY if parameters.gain == "direct" else 1
        return Requirements(
            parameters.itval, parameters.itval_max, windows=windows, silent_jobs=False, servers=True
        )

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Classify the models and move CPU between them."""
        host = cluster.host
        models = _models(host, cluster.now, cluster.interval_s, parameters)
        classes = {model.job.id: model.job_class for model in models}
        shift = _shift(models, parameters)
        shares, note = shift.shares, shift.note
        allocations = {job.id: Allocation(None, "-", _bystander(job)) for job in host.jobs}
        for model in models:
            share = shares[model.job.id]
            signal = "" if model.latency is None else f"{model.metric} {model.latency:.3g}"
            allocations[model.job.id] = Allocation(
                share, model.job_class, _reason(model, share, note), signal
            )
        before = {
            key: allocation.job_class for key, allocation in host.previous.items() if key in classes
        }
        left = any(old == SATISFIED != classes[key] for key, old in before.items())
        moved = any(abs(shares[m.job.id] - m.share) > 1e-12 for m in models)
        interval_change = IntervalChange.RESET if left else IntervalChange.KEEP
        if models and before == classes and not moved:
            interval_change = IntervalChange.DOUBLE
        return Decision(allocations, state, interval_change, gain=_gain(models, note))


DQOES = Dqoes()


def classify(target: float, latency: float | None, alpha: float) -> str:
    """Return a model's class; one of unknown response time has none."""
    if latency is None:
        return UNKNOWN
    quality = target - latency
    if abs(quality) <= alpha * target:
        return SATISFIED
    return OVER if quality > 0 else UNDER


def _shift(models: Sequence[Model], parameters: Parameters) -> Shift:
    if parameters.gain == "direct":
        return direct_shares(models, parameters.alpha)
    return exchanged_shares(
        models,
        alpha=parameters.alpha,
        beta=parameters.beta,
        is_adaptive=parameters.gain == "adaptive",
        trim=parameters.trim,
    )


def _models(host: HostState, now: int, interval_s: float, parameters: Parameters) -> list[Model]:
    jobs = [job for job in host.jobs if job.targets.qoe_s is not None and _names(job)]
    shares = _present_shares(host, jobs)
    models = []
    for job in jobs:
        target = job.targets.qoe_s or 0.0
        interval = round(interval_s * MICRO)
        latency = _latency(job, now, interval, parameters.quantile)
        job_class = classify(target, latency.seconds, parameters.alpha)
        demand = _demand(job, now, interval, host.cpus, parameters.quantile)
        models.append(
            Model(job, job_class, shares[job.id], target, latency.seconds, latency.metric, demand)
        )
    return models


def _demand(
    job: ContainerHistory, now: int, interval: int, cpus: float, quantile: float
) -> float | None:
    """Return how long the whole host needs for a request (s), None where unknown: the use of CPU
    times the response time, over up to five intervals (microseconds).

    Where requests follow each other, the use over a span is requests times cost, and the response
    time span over requests: whatever the shares in it were, the product is the cost.
    """
    name = _latency(job, now, interval, quantile).metric
    first = job.metrics[name].times[0]
    span = min(max(now - first, interval), _MEMORY * interval)
    latency = _latency(job, now, span, quantile).seconds
    used = cpu_use(job, now, span, cpus).share
    return None if latency is None or used is None else used * latency


def _present_shares(host: HostState, jobs: Sequence[ContainerHistory]) -> dict[str, float]:
    """Return L of each: its last share; 1/n for newcomers. After one came or went they are scaled
    to sum to 1 (ours)."""
    n = len(jobs)
    old = {key: allocation.share for key, allocation in host.previous.items()}
    known = {job.id: share for job in jobs if (share := old.get(job.id)) is not None}
    shares = {job.id: known.get(job.id, 1 / n) for job in jobs}
    managed = {key for key, share in old.items() if share is not None}
    total = math.fsum(shares.values())
    if set(shares) == managed or total <= 0:
        return shares
    return {key: share / total for key, share in shares.items()}


def _names(job: ContainerHistory) -> list[str]:
    """Return what a model may be judged by, of what it has reported as finite numbers, best first.

    The label `dltools.metric`, else the response times.
    """
    wanted = job.labels.get(METRIC)
    if wanted:
        return [wanted] if has_values(job, wanted) else []
    return metric_names.latencies(name for name in job.metrics if has_values(job, name))


@dataclass(frozen=True, slots=True)
class _Latency:
    """The metric that a model is judged by, and its value (s), None where the window has none."""

    metric: str
    seconds: float | None


def _latency(job: ContainerHistory, now: int, interval: int, quantile: float) -> _Latency:
    """Return the latency over the last interval (microseconds), of the first of a model's metrics
    that has one."""
    names = _names(job)
    for name in names:
        window = job.metrics[name].window(now - interval, now)
        values = sorted(value for value in window if math.isfinite(value) and value >= 0)
        if values:
            if quantile > 0:
                at = min(len(values) - 1, int(quantile * len(values)))
                return _Latency(name, values[at])
            return _Latency(name, math.fsum(values) / len(values))
    return _Latency(names[0], None)


def _bystander(job: ContainerHistory) -> str:
    """Return why a job is left alone."""
    if job.targets.qoe_s is None:
        return "no response-time target: left alone"
    named = (name for name in sorted(job.metrics) if has_values(job, name))
    reported = ", ".join(named) or "what is not finite"
    wanted = job.labels.get(METRIC) or "latency"
    return f"no {wanted} yet, only {reported}: left alone until it reports one"


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
