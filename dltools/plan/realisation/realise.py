"""The one call that turns a host's allocations into settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.feeders import feeders
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.order import priorities, rotation
from dltools.plan.realisation.owners import respecting
from dltools.plan.realisation.queue import Queue
from dltools.plan.realisation.settings import Settings
from dltools.plan.realisation.shared_host import Case, Realisation
from dltools.plan.realisation.shares import cores, quotas, weights
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.container_history import ContainerHistory

_REALISERS: Mapping[Mode, Callable[[Case], Realisation]] = {
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
    Mode.WEIGHT: {"cpu_weight": DEFAULT_CPU_WEIGHT},
    Mode.PRIORITY: {"cpu_weight": DEFAULT_CPU_WEIGHT},
    Mode.ROTATE: {},
    Mode.CORES: {"cpuset": None},
}
"""What a new container has, of that which a mode sets."""

_WHEN_LEAVING: Mapping[Mode, Settings] = {
    **_DEFAULTS,
    Mode.ROTATE: {"cpu_weight": DEFAULT_CPU_WEIGHT},
}
"""The same for a container that turns out to be no job: beside turns it may have had a weight."""


_LEAST_CPUS = 1.0
"""CPUs that are left for an order of jobs, however many those take that feed GPUs."""

_EXPLORES = "runs alone, so that it reports soon"
_SILENT = "competes all the same"
_IDLE = "uses next to no CPU: holds no place"


def realise(
    choice: ModeChoice,
    host: HostState,
    cpuset: str | None = None,
    without_progress: Sequence[ContainerHistory] = (),
    queue: Queue | None = None,
    now: int = 0,
    silent: Sequence[ContainerHistory] = (),
    leaving: Sequence[ContainerHistory] = (),
) -> Realisation:
    """Return the settings of each job that was last allocated a share, within what their owners
    asked for.

    `cpuset`: the CPUs that containers may have. `without_progress`: containers that have reported
    nothing yet; one that restarted, or still has the weight of a waiting job, gets the defaults
    back. `queue`: the queue at `now` (microseconds). `silent`: those of them that compete with the
    jobs all the same, where jobs run in order. `leaving`: containers that have had settings as
    jobs, and are none any more.
    """
    found = _shared(choice, host, cpuset, without_progress, queue or Queue(), now, silent, leaving)
    if not choice.queue.respects_owners:
        return found
    everyone = (*host.jobs, *without_progress, *silent, *leaving)
    owners = {job.id: job.owner for job in everyone}
    return respecting(found, owners, host.cpus)


def _shared(
    choice: ModeChoice,
    host: HostState,
    cpuset: str | None,
    without_progress: Sequence[ContainerHistory],
    queue: Queue,
    now: int,
    silent: Sequence[ContainerHistory],
    leaving: Sequence[ContainerHistory],
) -> Realisation:
    """Return the settings as if no owner had asked for anything."""
    given = {job.id: host.previous[job.id] for job in host.jobs if job.id in host.previous}
    shares = {key: allocation for key, allocation in given.items() if allocation.share is not None}
    has_shares = host.cpus > 0 and bool(shares)
    competing = list(silent) if host.cpus > 0 and choice.mode in _ORDERED else []
    competing_ids = {job.id for job in competing}
    defaults = _DEFAULTS[choice.mode]
    reset = {
        job.id: defaults
        for job in without_progress
        if defaults
        and job.id not in competing_ids
        and (job.managed or (has_shares and _was_waiting(job, defaults)))
    }
    reset |= {job.id: _WHEN_LEAVING[choice.mode] for job in leaving}
    notes = dict.fromkeys(reset, "what containers begin with")
    if not has_shares and not competing:
        return Realisation(choice.mode, choice.why, settings=reset, notes=notes)
    everyone = [job for job in host.jobs if job.id in shares] + competing
    first = feeders(choice, host, everyone, now)
    apart = _apart(choice.mode, [job for job in everyone if job.id not in first.notes])
    reset |= {**first.settings, **(dict.fromkeys(apart, defaults) if defaults else {})}
    notes |= {**first.notes, **apart}
    jobs = [job for job in everyone if job.id not in first.notes and job.id not in apart]
    if not jobs:
        return Realisation(choice.mode, choice.why, first.note, bool(first.note), reset, notes)
    unknown = Allocation(1 / len(jobs), "-", "has reported nothing yet", unlimited=True)
    explore = choice.queue.explore if choice.mode in _ORDERED else 0.0
    exploring = frozenset(job.id for job in jobs if job.explores(explore))
    shares = {key: allocation for key, allocation in shares.items() if key not in first.notes}
    case = Case(
        choice,
        jobs,
        {**shares, **dict.fromkeys(competing_ids, unknown)},
        max(_LEAST_CPUS, host.cpus - first.cpus) if choice.mode in _ORDERED else host.cpus,
        cpuset,
        queue,
        now,
        exploring,
        host.jobs_elsewhere,
        host.others,
    )
    found = _REALISERS[choice.mode](case)
    notes |= found.notes
    for job in jobs:
        if job.id in exploring or job.id in competing_ids:
            why = _EXPLORES if job.id in exploring else _SILENT
            notes[job.id] = "; ".join(filter(None, (why, notes.get(job.id))))
    note = "; ".join(filter(None, (found.note, first.note)))
    takes_turns = found.takes_turns or bool(first.note)
    return replace(
        found, note=note, takes_turns=takes_turns, settings={**reset, **found.settings}, notes=notes
    )


def _apart(mode: Mode, jobs: Sequence[ContainerHistory]) -> dict[str, str]:
    """Return the jobs that take no part in a mode and keep what containers begin with, and why."""
    idle = {job.id: _IDLE for job in jobs if job.is_idle} if mode in _ORDERED else {}
    if mode not in _WEIGHTED:
        return idle
    return idle | _under_other_parents([job for job in jobs if job.id not in idle])


def _under_other_parents(jobs: Sequence[ContainerHistory]) -> dict[str, str]:
    """Return the jobs whose weights do not compare with those of the most, and why. A job whose
    parent is unknown is taken for one of the most."""
    counts = Counter(job.cgroup_parent for job in jobs if job.cgroup_parent is not None)
    if len(counts) < 2:
        return {}
    most = min(counts, key=lambda parent: (-counts[parent], parent))
    return {
        job.id: f"under {job.cgroup_parent}, others under {most}: weights do not compare"
        for job in jobs
        if job.cgroup_parent not in (None, most)
    }


def _was_waiting(job: ContainerHistory, defaults: Settings) -> bool:
    """Tell whether a container has the weight of a job that waits: an earlier run left it so."""
    may_wait = "cpu_weight" in defaults and not is_serving(job)
    return may_wait and job.weight is not None and job.may_wait_at(job.weight)
