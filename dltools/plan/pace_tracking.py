"""Follows the paces of a host's jobs: what competing for CPUs, and sharing GPUs, costs them.

In each round `rounds` asks for what was measured, makes settings, and notes in which place each job
competes from then on, and beside whom it uses its GPUs.

Sharing GPUs usually wins: of 636 pairs of trainings on a V100 both rates, as parts of those alone,
come to 1.37 in the median, and to 0.35 at least (Narayanan et al.: Gavel, OSDI 2020, their table).
So jobs are left to share. Where their rates come to less than 1 for `SHARING_PATIENCE_S`, or where
it is asked for, jobs that share GPUs take turns, until others share these. All of it ours.

A turn pauses the others with their GPU memory: so all of it must be known, and fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dltools.notation.resources import format_bytes, short_gpu
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.by_resource import sharing_gpus
from dltools.plan.realisation.contention import SHARING_PATIENCE_S, Contention, MeasuredSharing
from dltools.plan.realisation.mode import GpuSharing, Mode
from dltools.plan.realisation.queue import Queue
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.evaluation_metric import metric_of
from dltools.plan.signals.paces import GpuPace, Mark, Pace, Place

_FREE_LOOK_S = 2.0
"""How often to look at a first job that has not shown yet how many threads it keeps busy."""


def measured_contention(host: HostHistory, *, is_crowded: bool) -> Contention:
    """Bring the paces of a host's jobs up to its newest sample; return what they show."""
    now, jobs = host.sampled_at or 0, _followed(host)
    for job in jobs:
        if job.pace is None:
            begin = Mark(now, job.attained)
            job.pace = Pace(metric_of(job) or "", begin, begin)
        job.pace = job.pace.measured(now, job.attained)
    if not is_crowded:
        return Contention()
    return host.contention.measured(jobs, now, host.used_by_others())


def note_places(host: HostHistory, found: Realisation, *, is_crowded: bool) -> Queue:
    """Note in which place each job competes from now on, by the settings `found` that hold from now
    on. Return the queue, which asks for a look in time."""
    now, jobs = host.sampled_at or 0, _followed(host)
    look_s = host.contention.look_s(now, max((job.arrived for job in jobs), default=now))
    for job in jobs:
        if job.pace is not None:
            place = _place(job, found) if is_crowded else None
            job.pace = job.pace.in_place(place, now, job.attained)
            if place is Place.FIRST and not job.pace.has_been_free:
                look_s = min(look_s, _FREE_LOOK_S)
    return found.queue.due_by(now, look_s) if is_crowded else found.queue


def forget_places(host: HostHistory) -> None:
    """Forget in which places jobs compete: settings that may stay for good put no job first."""
    for job in _followed(host):
        if job.pace is not None:
            job.pace = job.pace.in_place(None, host.sampled_at or 0, job.attained)


def _followed(host: HostHistory) -> list[ContainerHistory]:
    return [job for job in host.jobs() if (job.threads or 1) > 1 and not is_serving(job)]


def _place(job: ContainerHistory, found: Realisation) -> Place:
    if "turn_s" in found.settings.get(job.id, {}):
        return Place.TURN
    if found.mode in (Mode.WEIGHT, Mode.QUOTA):
        return Place.SHARES
    if found.mode is Mode.ROTATE:
        return Place.TURN
    position = found.queue.positions.get(job.run_id)
    return Place.FIRST if position is None or position.first else Place.WAITS


_LOOK_S = 10.0
"""How often jobs on GPUs are looked at, and for how long a job that has used a GPU keeps others
there from being alone (s)."""


@dataclass(frozen=True, slots=True)
class _GpuGroup:
    """GPUs that jobs share, directly or through other jobs.

    `name`: of the queue, the least UUID. `jobs`: those that may take turns. `why_not`: why they may
    not all the same, "" if they may.
    """

    name: str
    jobs: list[ContainerHistory]
    why_not: str

    @property
    def runs(self) -> tuple[str, ...]:
        """Which jobs these are."""
        return tuple(sorted(job.run_id for job in self.jobs))


def measured_sharing(host: HostHistory) -> dict[str, MeasuredSharing]:
    """Return what the paces of jobs that share GPUs show at the newest sample, by queue."""
    found = {}
    for shared in _all_shared(host):
        before = host.gpu_sharing.get(shared.name)
        if before is None or before.runs != shared.runs:
            before = MeasuredSharing(shared.runs)
        if not shared.why_not:
            kept = [job.gpu_pace.kept if job.gpu_pace else None for job in shared.jobs]
            known = [part for part in kept if part is not None]
            total = math.fsum(known) if len(known) == len(kept) else None
            found[shared.name] = before.after(total, host.sampled_at or 0)
    return found


def gpu_sharing(host: HostHistory, *, is_asked: bool, may_pause: bool) -> GpuSharing:
    """Return which jobs take turns on GPUs, and why the others share them.

    `is_asked`: turns are asked for; else they follow from what was measured. `may_pause`: jobs may
    be paused, as what is set does not stay for good.
    """
    turns: dict[str, tuple[str, ...]] = {}
    notes: dict[str, str] = {}
    for shared in _all_shared(host):
        measured = host.gpu_sharing.get(shared.name)
        if measured is None or measured.runs != shared.runs:
            measured = MeasuredSharing(shared.runs)
        takes_turns = may_pause and not shared.why_not and (is_asked or measured.takes_turns)
        if takes_turns:
            order = sorted(shared.jobs, key=lambda job: (job.arrived, job.name, job.id))
            turns[shared.name] = tuple(job.id for job in order)
        why = shared.why_not or ("as asked" if is_asked else _says(measured, host.sampled_at or 0))
        for job in shared.jobs:
            verb = "takes turns with" if takes_turns else "shares with"
            notes[job.id] = f"{verb} {_others(shared.jobs, job)}: {why}"
    return GpuSharing(turns, notes)


def note_companies(host: HostHistory, found: Realisation) -> Queue:
    """Note beside whom each job uses its GPUs from now on, by the settings `found` that hold from
    now on. Return the queue, which asks for a look in time."""
    now = host.sampled_at or 0
    holders = [one for one in host.containers.values() if one.gpu_seconds.gpus]
    busy: dict[str, set[str]] = {}
    for one in holders:
        for gpu in one.gpu_seconds.gpus if one.has_used_gpu(now, _LOOK_S) else ():
            busy.setdefault(gpu, set()).add(one.run_id)
    jobs = host.jobs() if holders else ()
    followed = {
        job.id
        for job in jobs
        if job.feeds_gpu(now)
        and not is_serving(job)
        and "turn_s" not in found.settings.get(job.id, {})
    }
    for key, job in host.containers.items():
        company = None
        if key in followed:
            others = set[str]().union(*(busy.get(gpu, ()) for gpu in job.gpus)) - {job.run_id}
            company = tuple(sorted(others))
            if job.gpu_pace is None and (metric := metric_of(job)):
                job.gpu_pace = GpuPace(metric)
        if job.gpu_pace is not None:
            job.gpu_pace = job.gpu_pace.beside(company, now)
    return host.queue.due_by(now, _LOOK_S) if holders else host.queue


def _all_shared(host: HostHistory) -> Iterator[_GpuGroup]:
    now = host.sampled_at or 0
    holders = [one for one in host.containers.values() if one.gpu_seconds.gpus]
    if len(holders) < 2:
        return
    may = [job for job in host.jobs() if may_take_turns(host, job, now)]
    for group in sharing_gpus(holders):
        ids = {one.id for one in group}
        jobs = [job for job in may if job.id in ids]
        if len(jobs) > 1:
            yield _GpuGroup(min(gpu for one in group for gpu in one.gpus), jobs, _why_not(group))


def may_take_turns(host: HostHistory, job: ContainerHistory, now: int) -> bool:
    """Tell whether a job uses a GPU, has a share of it, and all of its containers may be paused."""
    given = host.allocations.get(job.id)
    is_whole = not job.lacks_members and job.job not in host.jobs_elsewhere
    return (
        given is not None
        and given.share is not None
        and is_whole
        and job.may_be_paused
        and not is_serving(job)
        and job.feeds_gpu(now)
    )


def _why_not(group: Sequence[ContainerHistory]) -> str:
    """Return why those that hold some GPUs may not be paused with their memory, "" if they may."""
    for gpu in sorted({gpu for one in group for gpu in one.gpus}):
        uses = {one.name: one.gpu_seconds.gpus[gpu] for one in group if gpu in one.gpus}
        unknown = sorted(name for name, use in uses.items() if use.memory is None)
        if unknown:
            return f"the GPU memory of {unknown[0]} is unknown"
        limit = max((use.limit for use in uses.values() if use.limit is not None), default=None)
        if limit is None:
            return f"the memory of {short_gpu(gpu)} is unknown"
        held = sum(use.memory or 0 for use in uses.values())
        if held > limit:
            return (
                f"{format_bytes(held)} would stay in the {format_bytes(limit)} of {short_gpu(gpu)}"
            )
    return ""


def _says(measured: MeasuredSharing, now: int) -> str:
    if measured.total is None:
        return "what each does alone, or beside the others, is unknown"
    found = f"sharing, {len(measured.runs)} jobs make {measured.total:.2f} of one alone"
    if measured.takes_turns or measured.since is None:
        return found
    return f"{found} for {(now - measured.since) / 1e6:.0f} s of {SHARING_PATIENCE_S:g} s"


def _others(jobs: Sequence[ContainerHistory], job: ContainerHistory) -> str:
    others = [one.name for one in jobs if one is not job]
    return others[0] if len(others) == 1 else f"{len(others)} others"
