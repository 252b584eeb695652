"""Brings jobs that share GPUs to their shares of them: what was asked, what was had, and how.

A GPU has no weights that could be set while it is used. Two levers are the host's, and each job has
the one that it bears (all of it ours):

- duty: a training that may be paused runs for a part of each period; its memory stays on the GPU.
  `dltools.apply.turn_queues` spreads these turns over the period;
- feed: whoever may not be paused, as a server, has a quota of the CPUs that feed the GPU.

How much of a GPU a part of the time or a quota brings depends on all others, so it is measured: at
each look the lever is moved by the ratio of what was asked and what was had since it was set. Who
has less than was asked, and is not held back, has all that the others leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dltools.notation.resources import short_gpu
from dltools.notation.times import MICRO
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.by_resource import sharing_gpus
from dltools.plan.realisation.mode import GpuSharing
from dltools.plan.realisation.settings import LEAST_CPUS, Settings
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.effort import GpuLever

LOOK_S, _LONGEST_S = 10.0, 30.0
"""How long a lever must have been set before it is moved, and for how long what was had is averaged
at most (s): NVML often tells of one of several programs alone in a sample."""

_NEAR, _NEAR_BY_CPUS = 0.01, 0.1
"""GPUs by which a job may miss its share, and by its CPUs the part of it: less is noise."""

_EARLY_S = 1.0
"""How much earlier a look may come: samples do not come on the second."""

_STEP = 2.0
"""The factor by which a lever moves at once, at most."""

_LEAST_PART = 0.05
"""The least part of a period in which a job runs."""

_FREE_PART = 0.98
"""A job that would run for this part of the time or more is not paused."""

_SPARE = 4.0
"""A quota of this many times what a job uses holds it back no more."""


def _groups(host: HostHistory) -> Iterator[tuple[str, int, list[ContainerHistory]]]:
    """Yield the containers that share GPUs: the least UUID and the number of these, and those that
    use them and that the policy has decided on."""
    now = host.sampled_at or 0
    holders = [one for one in host.containers.values() if one.use.gpu_seconds.gpus]
    jobs = {job.id: job for job in host.jobs()}
    for group in sharing_gpus(holders):
        gpus = {gpu for one in group for gpu in one.use.gpus}
        own = [jobs[one.id] for one in group if one.id in jobs and one.use.feeds_gpu(now)]
        if len(group) > 1 and own:
            yield min(gpus), len(gpus), sorted(own, key=lambda job: (job.arrived, job.name, job.id))


def move_levers(host: HostHistory, may_pause: Callable[[ContainerHistory], bool]) -> None:
    """Move the levers of all jobs that share GPUs, by what they have had since."""
    shared = set()
    for _, size, jobs in _groups(host):
        for job in jobs:
            given = host.allocations.get(job.id)
            if given is not None and given.share is not None and not given.unlimited:
                shared.add(job.id)
                asked = min(given.share * size, float(len(job.use.gpus)))
                job.use.gpu_lever = _moved(job, asked, host.sampled_at or 0, by_duty=may_pause(job))
    for job in host.containers.values():
        if job.id not in shared:
            job.use.gpu_lever = None


def _moved(job: ContainerHistory, asked: float, now: int, *, by_duty: bool) -> GpuLever:
    """Return the lever of a job that asks for so many GPUs."""
    lever = job.use.gpu_lever
    if lever is None or lever.by_duty != by_duty:
        return GpuLever(now, job.use.effort, job.use.attained, asked, by_duty=by_duty)
    span_s = (now - lever.since) / MICRO
    if span_s < LOOK_S - _EARLY_S:
        return replace(lever, asked=asked)
    had, cores = (
        (job.use.effort - lever.effort) / span_s,
        (job.use.attained - lever.attained) / span_s,
    )
    if abs(asked - had) <= (_NEAR if by_duty else max(_NEAR, _NEAR_BY_CPUS * asked)):
        found = replace(lever, asked=asked, had=had)
        return found if span_s < _LONGEST_S else found.begun(now, job.use.effort, job.use.attained)
    factor = min(_STEP, max(1 / _STEP, asked / had if had > 0 else _STEP))
    found = replace(lever, asked=asked, had=had).begun(now, job.use.effort, job.use.attained)
    if by_duty:
        return replace(found, part=min(1.0, max(_LEAST_PART, lever.part * factor)))
    if lever.cpus is None and factor >= 1:
        return found
    quota = max(LEAST_CPUS, (lever.cpus or cores) * factor)
    is_loose = quota > _SPARE * max(cores, LEAST_CPUS)
    return replace(found, cpus=None if is_loose else round(quota, 3))


def shares_of_gpus(host: HostHistory, period_s: float) -> GpuSharing:
    """Return the settings that bring jobs to their shares of GPUs, and what there is to say."""
    settings: dict[str, Settings] = {}
    notes: dict[str, str] = {}
    for queue, _, jobs in _groups(host):
        for number, job in enumerate(jobs):
            lever = job.use.gpu_lever
            if lever is None:
                notes[job.id] = f"shares {short_gpu(queue)}: nothing is asked of it"
                continue
            how: Settings = {} if lever.by_duty else {"cpus": lever.cpus}
            what = "all the time" if lever.by_duty else "by its CPUs, no quota"
            if lever.by_duty and lever.part < _FREE_PART:
                turn_s = round(lever.part * period_s, 3)
                how = {"group": number, "turn_s": turn_s, "queue": queue, "period_s": period_s}
                how["asked"] = round(lever.asked, 3)
                if lever.had is not None:
                    how["had"] = round(lever.had, 3)
                what = f"duty, {turn_s:g} s of every {period_s:g} s"
            elif lever.cpus is not None:
                what = f"feed, a quota of {lever.cpus:g} CPUs"
            settings[job.id] = how
            had = "" if lever.had is None else f", had {lever.had:.2f}"
            notes[job.id] = f"{lever.asked:.2f} of {short_gpu(queue)} asked{had}: {what}"
    return GpuSharing(notes=notes, settings=settings)
