"""Follows the paces of a host's jobs, and says which of them take turns on GPUs.

In each round `rounds` asks for what was measured, makes settings, and notes in which place each job
competes from then on: so it is known what competing for CPUs costs them.

Sharing GPUs usually wins: of 636 pairs of trainings on a V100 both rates, as parts of those alone,
come to 1.37 in the median, and to 0.35 at least (Narayanan et al.: Gavel, OSDI 2020, their table).
So jobs are left to share, and take turns only where that is asked for. All of it ours.

A turn pauses the others with their GPU memory: so all of it must be known, and fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dltools.notation.resources import format_bytes, short_gpu
from dltools.plan.hosts.host_history import HostHistory, Jobs
from dltools.plan.policy.by_resource import sharing_gpus
from dltools.plan.realisation.contention import Contention
from dltools.plan.realisation.mode import GpuSharing, Mode
from dltools.plan.realisation.queue import Queue
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.evaluation_metric import metric_of
from dltools.plan.signals.job import Job
from dltools.plan.signals.paces import Mark, Pace, Place

_FREE_LOOK_S = 2.0
"""How often to look at a first job that has not shown yet how many threads it keeps busy."""


def measured_contention(host: HostHistory, jobs: Jobs, *, is_crowded: bool) -> Contention:
    """Bring the paces of a host's jobs up to its newest sample; return what they show."""
    now, followed = host.sampled_at or 0, _followed(jobs)
    for job in followed:
        if job.progress.pace is None:
            begin = Mark(now, job.use.attained)
            job.progress.pace = Pace(metric_of(job) or "", begin, begin)
        job.progress.pace = job.progress.pace.measured(now, job.use.attained)
    if not is_crowded:
        return Contention()
    return host.contention.measured(followed, now, host.others.share)


def note_places(host: HostHistory, jobs: Jobs, found: Realisation, *, is_crowded: bool) -> Queue:
    """Note in which place each job competes from now on, by the settings `found` that hold from now
    on. Return the queue, which asks for a look in time."""
    now, followed = host.sampled_at or 0, _followed(jobs)
    look_s = host.contention.look_s(now, max((job.arrived for job in followed), default=now))
    for job in followed:
        if job.progress.pace is not None:
            place = _place(job, found) if is_crowded else None
            job.progress.pace = job.progress.pace.in_place(place, now, job.use.attained)
            if place is Place.FIRST and not job.progress.pace.has_been_free:
                look_s = min(look_s, _FREE_LOOK_S)
    return found.queue.due_by(now, look_s) if is_crowded else found.queue


def forget_places(host: HostHistory) -> None:
    """Forget in which places jobs compete: settings that may stay for good put no job first."""
    for job in _followed(host.jobs()):
        if job.progress.pace is not None:
            job.progress.pace = job.progress.pace.in_place(
                None, host.sampled_at or 0, job.use.attained
            )


def _followed(jobs: Jobs) -> list[ContainerHistory]:
    return [job for job in jobs if (job.use.threads or 1) > 1 and not is_serving(job)]


def _place(job: ContainerHistory, found: Realisation) -> Place:
    if "turn_s" in found.settings.get(job.id, {}):
        return Place.TURN
    if found.mode in (Mode.WEIGHT, Mode.QUOTA):
        return Place.SHARES
    if found.mode is Mode.ROTATE:
        return Place.TURN
    position = found.queue.positions.get(job.run_id)
    return Place.FIRST if position is None or position.first else Place.WAITS


@dataclass(frozen=True, slots=True)
class _GpuGroup:
    """GPUs that jobs share, directly or through other jobs.

    `name`: of the queue, the least UUID. `jobs`: those that may take turns. `why_not`: why they may
    not all the same, "" if they may.
    """

    name: str
    jobs: list[ContainerHistory]
    why_not: str


def turns_on_gpus(host: HostHistory) -> GpuSharing:
    """Return which jobs take turns on GPUs, and why the others share them."""
    turns: dict[str, tuple[str, ...]] = {}
    notes: dict[str, str] = {}
    for shared in _all_shared(host):
        if not shared.why_not:
            order = sorted(shared.jobs, key=lambda job: (job.arrived, job.name, job.id))
            turns[shared.name] = tuple(job.id for job in order)
        verb = "shares with" if shared.why_not else "takes turns with"
        for job in shared.jobs:
            notes[job.id] = f"{verb} {_others(shared.jobs, job)}: {shared.why_not or 'as asked'}"
    return GpuSharing(turns, notes)


def _all_shared(host: HostHistory) -> Iterator[_GpuGroup]:
    now = host.sampled_at or 0
    holders = [one for one in host.containers.values() if one.use.gpu_seconds.gpus]
    if len(holders) < 2:
        return
    may = [job for job in host.jobs() if may_take_turns(host, job, now)]
    for group in sharing_gpus(holders):
        ids = {one.id for one in group}
        jobs = [job for job in may if job.id in ids]
        if len(jobs) > 1:
            yield _GpuGroup(
                min(gpu for one in group for gpu in one.use.gpus), jobs, _why_not(group)
            )


def may_take_turns(host: HostHistory, job: ContainerHistory, now: int) -> bool:
    """Tell whether a job uses a GPU, has a share of it, and all of its containers may be paused."""
    given = host.allocations.get(job.id)
    is_whole = not job.membership.lacks_members and job.membership.job not in host.jobs_elsewhere
    return (
        given is not None
        and given.share is not None
        and is_whole
        and job.may_be_paused
        and not is_serving(job)
        and job.use.feeds_gpu(now)
    )


def _why_not(group: Sequence[Job]) -> str:
    """Return why those that hold some GPUs may not be paused with their memory, "" if they may."""
    for gpu in sorted({gpu for one in group for gpu in one.use.gpus}):
        uses = {one.name: one.use.gpu_seconds.gpus[gpu] for one in group if gpu in one.use.gpus}
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


def _others(jobs: Sequence[ContainerHistory], job: ContainerHistory) -> str:
    others = [one.name for one in jobs if one is not job]
    return others[0] if len(others) == 1 else f"{len(others)} others"
