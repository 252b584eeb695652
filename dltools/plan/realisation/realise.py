"""Turns a host's allocations into settings, in the mode that was chosen, for `rounds`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.plan.forecast.promise import Due
from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.engine_bounds import can_weigh, within_engines
from dltools.plan.realisation.feeders import NEAR_WEIGHT, feeders
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.order import priorities, rotation
from dltools.plan.realisation.owner_bounds import within_owners
from dltools.plan.realisation.queue import Queue
from dltools.plan.realisation.settings import Settings
from dltools.plan.realisation.shared_host import Realisation, SharedHost, allocations_of
from dltools.plan.realisation.side_by_side import cores, quotas, weights
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.job import Job
from dltools.plan.signals.owner import waiting_weight

_REALISERS: Mapping[Mode, Callable[[SharedHost], Realisation]] = {
    Mode.QUOTA: quotas,
    Mode.WEIGHT: weights,
    Mode.PRIORITY: priorities,
    Mode.ROTATE: rotation,
    Mode.CORES: cores,
}

_ORDERED = (Mode.PRIORITY, Mode.ROTATE)
"""Modes in which jobs run in order, and a job that has reported nothing must not run beside all."""

_WEIGHTED = (Mode.WEIGHT, Mode.PRIORITY)
"""Modes that set weights, which count among the children of one cgroup."""

_DEFAULTS: Mapping[Mode, Settings] = {
    Mode.QUOTA: {"cpus": None},
    Mode.WEIGHT: {"weight": DEFAULT_CPU_WEIGHT},
    Mode.PRIORITY: {"weight": DEFAULT_CPU_WEIGHT},
    Mode.ROTATE: {"weight": DEFAULT_CPU_WEIGHT},
    Mode.CORES: {"cpuset": None},
}
"""The defaults of what each mode sets. Under `rotate` jobs have weights too: silent ones, feeders,
and all that waited by weights before."""

_LEAST_CPUS = 1.0
"""CPUs that are left for an order of jobs, however many those take that feed GPUs."""

_EXPLORES = "runs alone, so that it reports soon"
_SILENT = "competes all the same"
_IDLE = "uses next to no CPU: holds no place"

NO_COMPARISON = "weights do not compare"
"""In the note of a job for which a weight would say nothing: it has a parent of its own."""


def realise(
    choice: ModeChoice,
    host: HostState,
    cpuset: str | None = None,
    without_progress: Sequence[Job] = (),
    queue: Queue | None = None,
    now: int = 0,
    silent: Sequence[Job] = (),
    leaving: Sequence[Job] = (),
    dues: Mapping[str, Due] | None = None,
) -> Realisation:
    """Return the settings of each job that was last allocated a share, within what their owners
    asked for and their engines can do.

    `cpuset`: the CPUs that containers may have. `without_progress`: containers that have reported
    nothing yet; one that restarted, or still has the weight of a waiting job, gets the defaults
    back. `queue`: the queue at `now` (microseconds). `silent`: those of them that compete with the
    jobs all the same, where jobs run in order. `leaving`: containers that have had settings as
    jobs, and are none any more.
    """
    competing = list(silent) if host.cpus > 0 and choice.mode in _ORDERED else []
    shares = _given_shares(host)
    reset = _reset(choice.mode, without_progress, competing, has_shares=bool(shares))
    reset |= {job.id: _DEFAULTS[choice.mode] for job in leaving}
    found = Realisation(choice.mode, choice.why, queue=queue or Queue(), unable=choice.unable)
    if not choice.unable:
        shared = SharedHost(
            choice,
            [*(job for job in host.jobs if job.id in shares), *competing],
            shares,
            host.cpus,
            cpuset,
            queue or Queue(),
            now,
            jobs_elsewhere=host.jobs_elsewhere,
            others=host.others,
            dues=dues or {},
        )
        found = _in_mode(shared, host)
    notes = dict.fromkeys(reset, "what containers begin with") | dict(found.notes)
    ends_s = choice.compared.left_s(now) if choice.compared else {}
    found = replace(found, settings={**reset, **found.settings}, notes=notes, ends_s=ends_s)
    everyone = (*host.jobs, *without_progress, *silent, *leaving)
    found = within_engines(_without_old_quotas(found, everyone), everyone)
    if not choice.queue.respects_owners:
        return found
    owners = {job.id: job.owner for job in everyone}
    return within_owners(found, owners, host.cpus)


def _reset(
    mode: Mode, without_progress: Sequence[Job], competing: Sequence[Job], *, has_shares: bool
) -> dict[str, Settings]:
    """Return the defaults for containers that have reported nothing, do not compete, and have a
    setting from an earlier run."""
    defaults = _DEFAULTS[mode]
    if not defaults:
        return {}
    ids = {job.id for job in competing}
    return {
        job.id: defaults
        for job in without_progress
        if job.id not in ids and (job.managed or (has_shares and _was_waiting(job, defaults)))
    }


def _given_shares(host: HostState) -> dict[str, Allocation]:
    """Return the allocations of a host's jobs that have a share, none on a host of unknown size."""
    if host.cpus <= 0:
        return {}
    given = ((job.id, host.previous.get(job.id)) for job in host.jobs)
    return {key: one for key, one in given if one is not None and one.share is not None}


def _in_mode(host: SharedHost, state: HostState) -> Realisation:
    """Return the settings of the jobs that have a share, and of those that compete without one, as
    if no owner had asked for anything. Who feeds a GPU, or takes no part, stands in no line."""
    choice = host.choice
    if not host.jobs:
        return Realisation(choice.mode, choice.why)
    feeding = feeders(choice, state, host.jobs, host.now)
    others = [job for job in host.jobs if job.id not in feeding.notes]
    bystanders = _bystanders(choice.mode, others)
    jobs = [job for job in others if job.id not in bystanders]
    apart = Realisation(
        choice.mode,
        choice.why,
        feeding.note,
        bool(feeding.note),
        {**feeding.settings, **dict.fromkeys(bystanders, _DEFAULTS[choice.mode])},
        {**feeding.notes, **bystanders},
    )
    if not jobs:
        return apart
    is_ordered = choice.mode in _ORDERED
    shares = {key: one for key, one in host.allocations.items() if key not in feeding.notes}
    found = _of_jobs(
        replace(
            host,
            jobs=jobs,
            allocations=shares,
            cpus=max(_LEAST_CPUS, host.cpus - feeding.cpus) if is_ordered else host.cpus,
            exploring=frozenset(
                job.id
                for job in jobs
                if is_ordered and job.progress.explores(job.use.attained, choice.queue.explore)
            ),
        )
    )
    return replace(
        found,
        note="; ".join(filter(None, (found.note, apart.note))),
        takes_turns=found.takes_turns or apart.takes_turns,
        settings={**apart.settings, **found.settings},
        notes={**apart.notes, **found.notes},
    )


def _of_jobs(host: SharedHost) -> Realisation:
    """Return the settings of jobs; those without a share have reported nothing yet."""
    silent = {job.id for job in host.jobs if job.id not in host.allocations}
    found = _by_wish(replace(host, allocations=allocations_of(host.jobs, host.allocations)))
    notes = dict(found.notes)
    for job in host.jobs:
        if job.id in host.exploring or job.id in silent:
            why = _EXPLORES if job.id in host.exploring else _SILENT
            notes[job.id] = "; ".join(filter(None, (why, notes.get(job.id))))
    raised = _no_longer_first(host.choice.mode, host.jobs)
    settings = {key: one | raised.get(key, {}) for key, one in found.settings.items()}
    return replace(found, settings=settings, notes=notes)


def _by_wish(host: SharedHost) -> Realisation:
    """Return the settings of jobs. Where owners asked for different weights, those who asked for
    the same are a queue of their own, beside the others as under the engine alone; and nobody waits
    at a smaller weight than who asked for less. Turns know no weights: there nobody is paused.
    """
    mode, wishes = host.choice.mode, host.wishes()
    is_weighed = mode in _WEIGHTED or (mode is Mode.ROTATE and can_weigh(host.jobs))
    if len(wishes) < 2 or not is_weighed:
        return _REALISERS[mode](host)
    weigh = weights if mode is Mode.WEIGHT else priorities
    parts = [weigh(host.among(jobs)) for _, jobs in wishes]
    settings: dict[str, Settings] = {}
    least = 0.0
    for (ratio, _), part in zip(wishes, parts, strict=True):
        levels = {key: one["weight"] for key, one in part.settings.items()}
        levels = {key: max(level, least / ratio) for key, level in levels.items()}
        settings |= {key: {"weight": level} for key, level in levels.items()}
        least = max(least, *(level * ratio for level in levels.values()))
    positions = (part.queue.positions.items() for part in parts)
    dues = (part.queue.due for part in parts)
    return host.realisation(
        f"work-conserving; a queue for each of {len(parts)} weights that owners asked for",
        settings=settings,
        notes={key: note for part in parts for key, note in part.notes.items()},
        queue=Queue(dict(chain(*positions)), min(filter(None, dues), default=None)),
    )


def _no_longer_first(mode: Mode, jobs: Sequence[Job]) -> dict[str, Settings]:
    """Return the weights of jobs that have fed a GPU and feed none any more, in modes that set no
    weights else."""
    if mode in (*_WEIGHTED, Mode.ROTATE):
        return {}
    raised = NEAR_WEIGHT / 2
    return {
        job.id: {"weight": DEFAULT_CPU_WEIGHT}
        for job in jobs
        if job.managed
        and (job.in_force.limits.get("weight") or 0.0) > raised * max(1.0, job.owner.ratio)
    }


def _without_old_quotas(found: Realisation, jobs: Sequence[Job]) -> Realisation:
    """Return a realisation that takes away the quotas of earlier plans, in modes that set none."""
    if found.mode is Mode.QUOTA:
        return found
    free: Settings = {"cpus": None}
    capped = [job.id for job in jobs if any(job.owner.planned.get("cpus", ()))]
    freed = {key: free | found.settings.get(key, {}) for key in capped}
    return replace(found, settings={**found.settings, **freed})


def _bystanders(mode: Mode, jobs: Sequence[Job]) -> dict[str, str]:
    """Return the jobs that take no part in a mode and keep what containers begin with, and why."""
    idle = {job.id: _IDLE for job in jobs if job.use.is_idle} if mode in _ORDERED else {}
    if mode not in _WEIGHTED:
        return idle
    return idle | _under_other_parents([job for job in jobs if job.id not in idle])


def _under_other_parents(jobs: Sequence[Job]) -> dict[str, str]:
    """Return the jobs whose weights do not compare with those of the most, and why. A job whose
    parent is unknown is taken for one of the most."""
    counts = Counter(
        job.in_force.cgroup_parent for job in jobs if job.in_force.cgroup_parent is not None
    )
    if len(counts) < 2:
        return {}
    most = min(counts, key=lambda parent: (-counts[parent], parent))
    return {
        job.id: f"under {job.in_force.cgroup_parent}, others under {most}: {NO_COMPARISON}"
        for job in jobs
        if job.in_force.cgroup_parent not in (None, most)
    }


def _was_waiting(job: Job, defaults: Settings) -> bool:
    """Tell whether a container has the weight of a job that waits: an earlier run left it so."""
    weight, may_wait = (
        job.in_force.limits.get("weight"),
        "weight" in defaults and not is_serving(job),
    )
    return may_wait and weight is not None and weight <= waiting_weight(job.owner)
