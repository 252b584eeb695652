"""The weights that owners asked for: nobody waits behind who asked for less.

Jobs whose owners asked for the same weight are a queue of their own, which has its part beside the
other queues as under the engine alone.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable
from dataclasses import replace

from dltools.actions.settings import Settings
from dltools.notation.limits import DEFAULT_WEIGHT
from dltools.plan.realisation.bounds import can_be_done
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.realisation.queue_weights import priorities
from dltools.plan.realisation.quotas_and_weights import weights
from dltools.plan.realisation.shared_host import Realisation, SharedHost
from dltools.plan.signals.job import Job

WEIGHTED = (Mode.WEIGHT, Mode.PRIORITY)
"""Modes that set weights, which count among the children of one cgroup."""


def by_owners_weights(
    host: SharedHost, realise: Callable[[SharedHost], Realisation]
) -> Realisation:
    """Return the settings of jobs: those that `realise` gives, or, where owners asked for different
    weights, those of a queue for each weight. Nobody waits at a smaller weight than who asked for
    less. Turns know no weights: there nobody is paused.
    """
    mode, wishes = host.choice.mode, host.wishes()
    is_weighed = mode in WEIGHTED or (mode is Mode.ROTATE and can_be_done(Mode.WEIGHT, host.jobs))
    if len(wishes) < 2 or not is_weighed:
        return realise(host)
    weigh = weights if mode is Mode.WEIGHT else priorities
    parts = [weigh(_among(host, jobs)) for _, jobs in wishes]
    settings: dict[str, Settings] = {}
    least = 0.0
    for (ratio, _), part in zip(wishes, parts, strict=True):
        raised = {key: max(given["weight"], least / ratio) for key, given in part.settings.items()}
        settings |= {key: {"weight": level} for key, level in raised.items()}
        least = max(least, *(level * ratio for level in raised.values()))
    _lower_to_the_sum(host, settings)
    positions = ChainMap(*(dict(part.queue.positions) for part in parts))
    dues = (part.queue.due for part in parts)
    return host.realisation(
        f"work-conserving; a queue for each of {len(parts)} weights that owners asked for",
        settings=settings,
        notes={key: note for part in parts for key, note in part.notes.items()},
        queue=Queue(dict(positions), min(filter(None, dues), default=None)),
    )


def _lower_to_the_sum(host: SharedHost, settings: dict[str, Settings]) -> None:
    """Lower the weights of the first jobs until all jobs together have no more than their owners
    asked for. Some were raised, so that nobody waits behind who asked for less: without this,
    programs that are no jobs would have less of the CPUs than under Docker alone."""
    sizes = {job.id: job.owner.ratio * len(job.containers) for job in host.jobs}
    high = [key for key, given in settings.items() if given["weight"] > DEFAULT_WEIGHT]
    own = math.fsum(settings[key]["weight"] * sizes[key] for key in high)
    others = math.fsum(settings[key]["weight"] * sizes[key] for key in settings.keys() - high)
    factor = (DEFAULT_WEIGHT * math.fsum(sizes.values()) - others) / (own or 1.0)
    for key in high if factor < 1 else ():
        settings[key] = {"weight": max(DEFAULT_WEIGHT, settings[key]["weight"] * factor)}


def _among(host: SharedHost, jobs: list[Job]) -> SharedHost:
    """Return what settings are made from where only these jobs share the host, and the others
    compete with them: what they have together stays theirs."""
    total = math.fsum(map(host.share, jobs)) or 1.0
    own = {job.id: host.allocations[job.id] for job in jobs}
    for key, allocation in own.items():
        if allocation.share is not None and not allocation.unlimited:
            own[key] = replace(allocation, share=allocation.share / total)
    return replace(host, jobs=jobs, allocations=own, others=1.0)
