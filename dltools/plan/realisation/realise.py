"""Turns a host's allocations into settings, in the mode that was chosen, for `rounds`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dltools.actions.settings import Settings, as_found
from dltools.notation.limits import DEFAULTS, only
from dltools.plan.forecast.docker_alone import Due
from dltools.plan.policy.interface import HostState
from dltools.plan.realisation.bounds import within_bounds
from dltools.plan.realisation.feeders import feeders, list_of_others
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import ORDERED, Mode
from dltools.plan.realisation.owners_weights import WEIGHTED, by_owners_weights
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.realisation.queue_weights import priorities
from dltools.plan.realisation.quotas_and_weights import quotas, weights
from dltools.plan.realisation.rotation import rotation
from dltools.plan.realisation.shared_host import Realisation, SharedHost, allocations_of
from dltools.plan.signals.busy_threads import cpus_together, is_serving
from dltools.plan.signals.job import Job
from dltools.text import joined

_REALISERS: Mapping[Mode, Callable[[SharedHost], Realisation]] = {
    Mode.QUOTA: quotas,
    Mode.WEIGHT: weights,
    Mode.PRIORITY: priorities,
    Mode.ROTATE: rotation,
}

_LEAST_CPUS = 1.0
"""CPUs that are left for an order of jobs, however many feeders take."""

_EXPLORES = "runs alone, so that it reports soon"
_SILENT = "competes all the same"
_IDLE = "uses next to no CPU: holds no place"

NO_COMPARISON = "weights do not compare"
"""In the note of a job for which a weight would say nothing: it has a parent of its own."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a host's settings depend on besides the allocations of its jobs."""

    queue: Queue = field(default_factory=Queue)
    """The queue as the last plan has left it."""

    dues: Mapping[str, Due] = field(default_factory=dict)
    """Until when jobs can wait, by run."""

    cores: Sequence[Sequence[int]] = ()
    """The CPUs of each core that containers may have, () where jobs leave none to feeders."""

    silent: Sequence[Job] = ()
    """Containers that have reported nothing yet."""

    competing: Sequence[Job] = ()
    """Those of them that compete with the jobs, where jobs run in order."""

    leaving: Sequence[Job] = ()
    """Containers that have had settings as jobs, and are none any more."""


def realise(choice: ModeChoice, host: HostState, situation: Situation) -> Realisation:
    """Return the settings of each job that was last allocated a share, within what their owners
    asked for and their engines can do."""
    now, queue = host.sampled_at or 0, situation.queue
    competing = situation.competing if host.cpus > 0 and choice.mode in ORDERED else ()
    shares = {
        job.id: given
        for job in host.jobs
        if (given := host.previous.get(job.id)) and given.share is not None and host.cpus > 0
    }
    realisation = Realisation(choice.mode, choice.why, queue=queue, unable=choice.unable)
    if not choice.unable:
        jobs = [*(job for job in host.jobs if job.id in shares), *competing]
        cores, dues = situation.cores, situation.dues
        shared = SharedHost(choice, jobs, shares, host.cpus, cores, queue, now, dues=dues)
        realisation = _in_mode(shared, host)
    silent = [job for job in situation.silent if job not in competing]
    waited = [job for job in silent if job.managed or (shares and _was_waiting(job, choice.mode))]
    reset = [job.id for job in (*waited, *situation.leaving)]
    realisation = replace(
        realisation,
        settings=dict.fromkeys(reset, _defaults(choice.mode)) | {**realisation.settings},
        notes=dict.fromkeys(reset, "what containers begin with") | {**realisation.notes},
        ends_s=choice.compared.left_s(now) if choice.compared else {},
    )
    everyone = (*host.jobs, *situation.silent, *situation.leaving)
    respects_owners = choice.queue.owners == "respect"
    realisation = _without_earlier(realisation, everyone)
    return within_bounds(realisation, everyone, host.cpus, respects_owners=respects_owners)


def _defaults(mode: Mode) -> Settings:
    """Return what containers begin with, of that which a mode sets."""
    return as_found(only(DEFAULTS, (mode.limit,)))


def _in_mode(host: SharedHost, state: HostState) -> Realisation:
    """Return the settings of the jobs that have a share, and of those that compete without one, as
    if no owner had asked for anything. A feeder, and who takes no part, stands in no line."""
    mode = host.choice.mode
    feeding = feeders(host, state)
    others = [job for job in host.jobs if job.id not in feeding.notes]
    bystanders = _bystanders(mode, others)
    jobs = [job for job in others if job.id not in bystanders]
    realisation = Realisation(mode, host.choice.why)
    if jobs:
        needs = cpus_together((job for job in host.jobs if job.id in feeding.notes), host.cpus)
        realisation = _in_line(host, state, jobs, needs)
    apart = dict.fromkeys(bystanders, _defaults(mode))
    return replace(
        realisation,
        note=joined(realisation.note, feeding.note),
        settings={**feeding.settings, **apart, **realisation.settings},
        notes={**feeding.notes, **bystanders, **realisation.notes},
    )


def _in_line(
    host: SharedHost, state: HostState, jobs: list[Job], feeding_cpus: float
) -> Realisation:
    """Return the settings of the jobs that share what feeders leave of a host."""
    is_ordered = host.choice.mode in ORDERED
    explore_s = host.choice.queue.explore if is_ordered else 0.0
    exploring = [job.id for job in jobs if job.progress.explores(job.use.attained, explore_s)]
    shared = replace(
        host,
        jobs=jobs,
        allocations=allocations_of(jobs, host.allocations),
        cpus=max(_LEAST_CPUS, host.cpus - max(feeding_cpus, host.choice.cpus_left))
        if is_ordered
        else host.cpus,
        exploring=frozenset(exploring),
        jobs_elsewhere=state.jobs_elsewhere,
        others=state.others,
    )
    realisation = by_owners_weights(shared, _REALISERS[host.choice.mode])
    silent = [job.id for job in jobs if job.id not in host.allocations]
    why = dict.fromkeys(silent, _SILENT) | dict.fromkeys(exploring, _EXPLORES)
    notes = {key: joined(note, realisation.notes.get(key)) for key, note in why.items()}
    own_lists = {job.id for job in jobs if job.owner.cpuset is not None}
    left = list_of_others(host) if is_ordered else {}
    settings = {
        key: setting if key in own_lists else setting | left
        for key, setting in realisation.settings.items()
    }
    return replace(realisation, settings=settings, notes={**realisation.notes, **notes})


def _without_earlier(realisation: Realisation, jobs: Sequence[Job]) -> Realisation:
    """Return a realisation that takes back what earlier plans have set and this mode does not."""
    sets = _defaults(realisation.mode)
    names = {job.id: job.owner.planned.keys() - sets.keys() for job in jobs}
    earlier = {key: as_found(only(DEFAULTS, own)) for key, own in names.items() if own}
    settings = {key: limits | realisation.settings.get(key, {}) for key, limits in earlier.items()}
    return replace(realisation, settings={**realisation.settings, **settings})


def _bystanders(mode: Mode, jobs: Sequence[Job]) -> dict[str, str]:
    """Return the jobs that take no part in a mode and keep what containers begin with, and why."""
    bystanders = {job.id: _IDLE for job in jobs if job.use.is_idle} if mode in ORDERED else {}
    if mode in WEIGHTED:
        bystanders |= _under_other_parents([job for job in jobs if job.id not in bystanders])
    return bystanders


def _under_other_parents(jobs: Sequence[Job]) -> dict[str, str]:
    """Return the jobs whose weights do not compare with those of the most, and why. A job whose
    parent is unknown is taken for one of the most."""
    parents = {job.id: job.in_force.cgroup_parent for job in jobs}
    counts = Counter(parent for parent in parents.values() if parent is not None)
    if len(counts) < 2:
        return {}
    most = min(counts, key=lambda parent: (-counts[parent], parent))
    return {
        key: f"under {parent}, others under {most}: {NO_COMPARISON}"
        for key, parent in parents.items()
        if parent not in (None, most)
    }


def _was_waiting(job: Job, mode: Mode) -> bool:
    """Tell whether a container has the weight of a job that waits, in a mode that sets weights: an
    earlier run left it so."""
    weight, low = job.in_force.limits.get("weight", math.inf), job.owner.waiting_weight
    return mode.limit == "weight" and not is_serving(job) and weight <= low
