"""The modes in which all jobs run at once, and each gets its share all the time: `quota` and
`weight`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dltools.actions.settings import Settings
from dltools.notation.limits import (
    DEFAULT_WEIGHT,
    LEAST_CPUS,
    LEAST_WEIGHT,
    MOST_WEIGHT,
    whole_weight,
)
from dltools.plan.policy.by_user import are_of_one_user
from dltools.plan.policy.shares import in_proportion
from dltools.plan.realisation import order
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.realisation.shared_host import MILD_NOTE, TURN_NOTE, Realisation, SharedHost
from dltools.plan.signals.busy_threads import is_serving, needed_cpus

MILD_WEIGHTS = (512.0, 2048.0)
"""Bounds where what is set may stay for good (ours)."""


_FILLED_FLOOR = 0.25
"""Least quota that nobody has asked for, as a part of an equal share (ours)."""


def quotas(host: SharedHost) -> Realisation:
    """Return a hard cap of share * cpus cores for each job, to 0.001; a share of 1 is without one.

    Quotas isolate, and leave CPU idle where a job does not use its share. Where nobody has asked
    for them, they are filled: a job that can use no more than its quota has none, and the others
    have what it leaves.
    """
    shares, fair = _without_starvation(host)
    shares = _as_wished(host, shares)
    shares = _filled(host, shares) if host.choice.fills else shares
    settings: dict[str, Settings] = {}
    total = 0.0
    for job in host.jobs:
        share = 1.0 if host.is_unlimited(job) else shares[job.id]
        cores = round(max(LEAST_CPUS, share * host.cpus), 3)
        settings[job.id] = {"cpus": None if cores >= host.cpus else cores}
        total += min(cores, host.most_cpus(job))
    note = f"quotas sum to {total:.3g} of {host.cpus:g} CPUs; unused quota is lost"
    return host.realisation(note, settings=settings, **fair)


def _as_wished(host: SharedHost, shares: Mapping[str, float]) -> dict[str, float]:
    """Return shares of which who asked for a larger weight has as many times more, or all."""
    wished, least = dict(shares), 0.0
    for ratio, jobs in host.wishes():
        own = {job.id: min(1.0, max(shares[job.id], least * ratio)) for job in jobs}
        wished |= own
        least = max(least, *(share / ratio for share in own.values()))
    return wished


def _filled(host: SharedHost, shares: Mapping[str, float]) -> dict[str, float]:
    """Return shares that come to the whole host where the jobs can use it; 1 for a job that can use
    no more than its part."""
    most = {job.id: min(host.most_cpus(job), needed_cpus(job)) / host.cpus for job in host.jobs}
    if math.fsum(most.values()) <= 1:
        return dict.fromkeys(most, 1.0)
    parts = in_proportion(shares, 1.0, _FILLED_FLOOR / len(most), most)
    return {key: 1.0 if part >= most[key] else part for key, part in parts.items()}


def weights(host: SharedHost) -> Realisation:
    """Return weights in proportion to the shares, 1024 for an average share and for a share of 1.

    Weights are work-conserving: what one job leaves the others take. Where the choice is even, each
    job has as much, unless users come first and differ.
    """
    is_by_user = host.choice.queue.users == "fair" and not are_of_one_user(host.jobs)
    if host.choice.is_even and not is_by_user:
        return _evenly(host)
    shares, fair = _without_starvation(host)
    settings: dict[str, Settings] = {}
    is_mild = host.choice.is_mild
    bounds = MILD_WEIGHTS if is_mild else (LEAST_WEIGHT, MOST_WEIGHT)
    for job in host.jobs:
        share = shares[job.id]
        is_default = host.is_unlimited(job) or share >= 1
        part = share * len(host.jobs) / len(job.containers)
        weight = DEFAULT_WEIGHT * (1.0 if is_default else part)
        settings[job.id] = {"weight": whole_weight(weight, *bounds)}
    note = "work-conserving: the others take what a job leaves"
    note += f"; {MILD_NOTE}" if is_mild else ""
    return host.realisation(note, settings=settings, **fair)


_PAYS_BACK = 4.0
"""By what the weight of a job is raised that an order has put too far behind (ours)."""

_BEHIND = 0.9
"""Until when an order counts: until each job has had this part of what it would have had (ours)."""


def _evenly(host: SharedHost) -> Realisation:
    """Return the default weight for each job. Who would end later than it is promised to, as an
    order has held it back before, has more until that is made up for; but not where programs that
    are no jobs compete, whose CPUs that would be."""
    pays_back = bool(host.queue.positions) and not host.others_compete
    late = order.urgent_runs(host, host.jobs) if pays_back else ()
    settings: dict[str, Settings] = {
        job.id: {"weight": DEFAULT_WEIGHT * (_PAYS_BACK if job.run_id in late else 1.0)}
        for job in host.jobs
    }
    notes = {job.id: TURN_NOTE for job in host.jobs if job.run_id in late}
    is_behind = any(due.had < _BEHIND for due in host.dues.values())
    queue = replace(host.queue, due=None) if is_behind else Queue()
    return host.realisation("no job is held back", settings=settings, notes=notes, queue=queue)


def _without_starvation(host: SharedHost) -> tuple[dict[str, float], dict[str, Any]]:
    """Return shares in which a job of less than half an equal share has as much as the largest
    where it must run; and what a realisation says of that: its notes, and the queue after."""
    jobs = [job for job in host.jobs if not is_serving(job)]
    shares = {job.id: host.share(job) for job in host.jobs}
    low = [job for job in jobs if shares[job.id] < 1 / (2 * len(host.jobs)) - 1e-12]
    urgent = order.urgent_runs(host, low)
    notes = {job.id: TURN_NOTE for job in low if job.run_id in urgent}
    shares |= {key: max(shares.values()) for key in notes}
    waiting = [job.run_id for job in low if job.run_id not in urgent]
    first = [job.run_id for job in jobs if job.run_id not in waiting]
    queue = host.queue.moved(first, waiting, urgent, (), host.now)
    queue = order.due_in_time(host, [job for job in low if job.run_id in waiting], queue)
    return shares, {"notes": notes, "queue": queue}
