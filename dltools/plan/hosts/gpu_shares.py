"""Brings jobs that share GPUs to their shares of them: what was asked, what was had, and how.

A GPU has no weights that could be set while it is used. Two levers are the host's, and each job has
the one that it bears (all of it ours):

- duty: a training that may be paused runs for a part of each period; its memory stays on the GPU.
  `dltools.apply.turn_queues` spreads these turns over the period;
- feed: whoever may not be paused, as a server, has a quota of the CPUs that feed the GPU.

Programs that share a GPU have equal slices of its time while they have work for it (measured on an
H200: two, three and four trainings had 0.46, 0.30 and 0.24 of the steps of one alone). So what a
job has at given parts of the period is known beforehand, and the parts are found by that. NVML is
too coarse to find them: it attributes each 0.2 s to one program, and was wrong by a third over 10 s
(measured there). It tells who is limited by something else: who has far less than its slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dltools.notation.resources import short_gpu
from dltools.notation.times import MICRO
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.by_resource import sharing_gpus
from dltools.plan.realisation.mode import GpuSharing
from dltools.plan.realisation.settings import LEAST_CPUS, Settings
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.effort import GpuLever

LOOK_S = 10.0
"""For how long levers must have been set before it is judged what jobs had (s)."""

_EARLY_S = 1.0
"""How much earlier a look may come: samples do not come on the second."""

_COARSE = 2 / 3
"""Who had less than this part of its slices, by NVML, is limited by something else."""

_GROWS = 1.25
"""How much more such a job may have than it had, until the next look."""

_LEAST_PART, _FREE_PART = 0.05, 0.98
"""The least part of a period in which a job runs, and the one from which it is not paused."""

_POINTS, _TRIES = 50, 12
"""Points of the period at which slices are counted, and steps in which the parts are found."""

_NEAR = 0.1
"""A quota that would change by less than this part of itself stays."""

_STEP = 2.0
"""The factor by which a quota moves at once, at most."""

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
    now, held = host.sampled_at or 0, set()
    for _, size, jobs in _groups(host):
        given = {job.id: host.allocations.get(job.id) for job in jobs}
        for job in jobs:
            one = given[job.id]
            if one is not None and one.share is not None and not one.unlimited:
                held.add(job.id)
                asked = min(one.share * size, float(len(job.use.gpus)))
                lever = job.use.gpu_lever
                if lever is None or lever.by_duty != may_pause(job):
                    lever = GpuLever(now, job.use.effort, job.use.attained, by_duty=may_pause(job))
                job.use.gpu_lever = replace(lever, asked=asked)
        shared = [job for job in jobs if job.id in held]
        _judge(shared, size, now)
        for job in shared:
            if job.use.gpu_lever and not job.use.gpu_lever.by_duty:
                one = given[job.id]
                job.use.gpu_lever = _fed(job, job.use.gpu_lever, now, one.factor if one else None)
        _find_parts(shared, size, now)
    for job in host.containers.values():
        if job.id not in held:
            job.use.gpu_lever = None


def _judge(jobs: Sequence[ContainerHistory], size: int, now: int) -> None:
    """Keep what each job has had since its lever was set, and who is limited by something else."""
    levers = [job.use.gpu_lever for job in jobs if job.use.gpu_lever]
    slices = _slices(levers, size)
    for job, lever, usual in zip(jobs, levers, slices, strict=True):
        span_s = (now - lever.since) / MICRO
        if span_s >= LOOK_S - _EARLY_S:
            had = (job.use.effort - lever.effort) / span_s
            is_short = had < _COARSE * usual
            most = _GROWS * had / (lever.part if lever.by_duty else 1.0) if is_short else None
            job.use.gpu_lever = replace(lever, had=had, most=most)


def _fed(job: ContainerHistory, lever: GpuLever, now: int, factor: float | None) -> GpuLever:
    """Return the lever of a job that has a quota of CPUs: moved at each look, by how many times as
    much as it had it is to have."""
    span_s = (now - lever.since) / MICRO
    if span_s < LOOK_S - _EARLY_S or lever.had is None:
        return lever
    begun = lever.begun(now, job.use.effort, job.use.attained)
    cores = (job.use.attained - lever.attained) / span_s
    wanted = factor or (lever.asked / lever.had if lever.had > 0 else _STEP)
    factor = min(_STEP, max(1 / _STEP, wanted))
    if abs(factor - 1) <= _NEAR or (lever.cpus is None and factor >= 1):
        return begun
    quota = max(LEAST_CPUS, (lever.cpus or cores) * factor)
    is_loose = quota > _SPARE * max(cores, LEAST_CPUS)
    return replace(begun, cpus=None if is_loose else round(quota, 3))


def _find_parts(jobs: Sequence[ContainerHistory], size: int, now: int) -> None:
    """Give each job that may be paused the part of the period in which it has what it asks for."""
    levers = [job.use.gpu_lever for job in jobs if job.use.gpu_lever]
    found = [replace(one, part=1.0) if one.by_duty else one for one in levers]
    for _ in range(_TRIES):
        found = [
            replace(one, part=min(1.0, max(_LEAST_PART, one.part * one.asked / had)))
            if one.by_duty and had > 0
            else one
            for one, had in zip(found, _slices(found, size), strict=True)
        ]
    for job, before, after in zip(jobs, levers, found, strict=True):
        is_due = now - before.since >= (LOOK_S - _EARLY_S) * MICRO
        if before.by_duty and (is_due or abs(after.part - before.part) > _NEAR * before.part):
            job.use.gpu_lever = after.begun(now, job.use.effort, job.use.attained)


def _slices(levers: Sequence[GpuLever], size: int) -> list[float]:
    """Return how many of so many GPUs each job has: equal slices of the time of all that run, but
    for those that want less."""
    paused = [one for one in levers if one.part < _FREE_PART]
    spare = max(0.0, 1 - math.fsum(one.part for one in paused)) / max(1, len(paused))
    begins = {}
    for number, one in enumerate(paused):
        begins[id(one)] = math.fsum(before.part for before in paused[:number]) + number * spare
    had = [0.0] * len(levers)
    for point in range(_POINTS):
        runs = [
            number
            for number, one in enumerate(levers)
            if id(one) not in begins or (point / _POINTS - begins[id(one)]) % 1 < one.part
        ]
        left = float(size)
        runs.sort(key=lambda number: levers[number].most or math.inf)
        for place, number in enumerate(runs):
            own = min(levers[number].most or math.inf, left / (len(runs) - place))
            had[number] += own / _POINTS
            left -= own
    return had


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
