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

Where nobody asks for shares, jobs share as the GPU lets them, which usually wins: of 636 pairs of
trainings on a V100 both rates, as parts of those alone, come to 1.37 in the median, and to 0.35 at
least (Narayanan et al.: Gavel, OSDI 2020, their table).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dltools.actions.settings import Settings
from dltools.notation.limits import LEAST_CPUS
from dltools.notation.resources import short_uuid
from dltools.notation.times import MICRO
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.by_resource import sharing_devices
from dltools.plan.realisation.mode import LeverSettings
from dltools.plan.realisation.options import QueueParameters
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.gpu_use import GpuLever
from dltools.plan.signals.job import Job

LOOK_S = 10.0
"""For how long levers must have been set before it is judged what jobs had (s)."""

_EARLY_S = 1.0
"""How much earlier a look may come: samples do not come on the second."""

_COARSE = 2 / 3
"""Who had less than this part of its slices, by NVML, is limited by something else."""

_GROWS = 1.25
"""How much more such a job may have than it had, until the next look."""

_LEAST_PART, _FREE_PART = 0.05, 0.98
"""The least part of a period in which a job runs, or of a GPU that it is taken to use, and the part
from which it is not paused."""

_POINTS, _TRIES = 50, 12
"""Points of the period at which slices are counted, and steps in which the parts are found."""

_NEAR = 0.1
"""A lever that would change by less than this part of itself stays: a part until the next look."""

_STEP = 2.0
"""The factor by which a quota moves at once, at most."""

_SPARE = 4.0
"""A quota of this many times what a job uses holds it back no more."""


def _groups(host: HostHistory) -> Iterator[tuple[str, list[Job], list[ContainerHistory]]]:
    """Yield the containers that share GPUs: the least UUID of these, those that hold them, and the
    jobs among them that use them, in order of arrival."""
    now = host.sampled_at or 0
    jobs = sorted(host.jobs(), key=lambda job: (job.arrived, job.name, job.id))
    for group in sharing_devices(host.containers.values()):
        ids = {job.id for job in group}
        own = [job for job in jobs if job.id in ids and job.use.is_feeder(now)]
        if len(group) > 1 and own:
            yield min(gpu for job in group for gpu in job.use.gpus), group, own


def move_levers(host: HostHistory) -> None:
    """Move the levers of all jobs that share GPUs, by what they have had since."""
    now, held = host.sampled_at or 0, set()
    for _, group, jobs in _groups(host):
        size = len({gpu for job in group for gpu in job.use.gpus})
        more = sum(job.use.is_feeder(now) for job in group) - len(jobs)
        shared: list[tuple[ContainerHistory, GpuLever, float | None]] = []
        for job in jobs:
            given = host.decision.allocations.get(job.id)
            if given is None or given.share is None or given.unlimited:
                more += 1
                continue
            lever, by_duty = job.use.gpu_use.lever, _may_be_paused(host, job)
            if lever is None or lever.by_duty != by_duty:
                lever = _begun(job, GpuLever(now, 0.0, 0.0, by_duty=by_duty), now)
            asked = min(given.share * size, float(len(job.use.gpus)))
            shared.append((job, replace(lever, asked=asked), given.factor))
        strangers = [GpuLever(now, 0.0, 0.0)] * more
        slices = _slices([*(lever for _, lever, _ in shared), *strangers], size)
        levers = []
        for (job, set_before, factor), had in zip(shared, slices, strict=False):
            lever = _judged(job, set_before, now, had)
            levers.append(lever if lever.by_duty else _fed(job, lever, now, factor))
        parts = _parts([*levers, *strangers], size)
        for (job, _, _), lever, part in zip(shared, levers, parts, strict=False):
            held.add(job.id)
            job.use.gpu_use.lever = _set(job, lever, now, part) if lever.by_duty else lever
    for job in host.containers.values():
        if job.id not in held:
            job.use.gpu_use.lever = None


def _begun(job: ContainerHistory, lever: GpuLever, now: int) -> GpuLever:
    """Return a lever as set now, to be measured from here on."""
    return replace(
        lever, since=now, effort=job.use.effort, attained=job.use.attained, position=_position(job)
    )


def _is_due(lever: GpuLever, now: int) -> bool:
    return now - lever.since >= (LOOK_S - _EARLY_S) * MICRO


def _judged(job: ContainerHistory, lever: GpuLever, now: int, slices: float) -> GpuLever:
    """Return a lever with what its job has had since it was set; `slices`: what the slices were
    that it was let have. Steps tell that best: while it is never paused each takes `cost`."""
    if not _is_due(lever, now):
        return lever
    span_s = (now - lever.since) / MICRO
    had = (job.use.effort - lever.effort) / span_s
    most = max(_LEAST_PART, _GROWS * had / lever.part) if had < _COARSE * slices else None
    steps = (_position(job) or 0.0) - (lever.position or 0.0)
    if lever.position is None or steps <= 0:
        return replace(lever, had=had, most=most)
    if lever.part >= _FREE_PART:
        cost = slices * span_s / steps if most is None and lever.most is None else None
        return replace(lever, had=had, most=most, cost=cost)
    if lever.cost is None:
        return replace(lever, had=had, most=most)
    had = steps * lever.cost / span_s
    gain = min(_STEP, max(1 / _STEP, had / slices))
    return replace(lever, had=had, most=most, gain=(lever.gain + gain) / 2)


def _position(job: ContainerHistory) -> float | None:
    step, epoch = job.progress.step, job.progress.epoch
    return epoch if step is None else float(step)


def _fed(job: ContainerHistory, lever: GpuLever, now: int, factor: float | None) -> GpuLever:
    """Return the lever of a job that has a quota of CPUs: moved at each look, by how many times as
    much as it had it is to have."""
    if not _is_due(lever, now) or lever.had is None:
        return lever
    begun = _begun(job, lever, now)
    cores = (job.use.attained - lever.attained) * MICRO / (now - lever.since)
    times = factor or (lever.asked / lever.had if lever.had > 0 else _STEP)
    factor = min(_STEP, max(1 / _STEP, times))
    if abs(factor - 1) <= _NEAR or (lever.cpus is None and factor >= 1):
        return begun
    quota = max(LEAST_CPUS, (lever.cpus or cores) * factor)
    is_loose = quota > _SPARE * max(cores, LEAST_CPUS)
    return replace(begun, cpus=None if is_loose else round(quota, 3))


def _parts(levers: Sequence[GpuLever], size: int) -> list[float]:
    """Return the part of the period for each lever with which all have what they ask for."""
    gpu_levers = [replace(lever, part=1.0) for lever in levers]
    for _ in range(_TRIES):
        gpu_levers = [
            replace(one, part=min(1.0, max(_LEAST_PART, one.part * one.asked / (one.gain * had))))
            if one.by_duty and one.asked and had > 0
            else one
            for one, had in zip(gpu_levers, _slices(gpu_levers, size), strict=True)
        ]
    return [lever.part for lever in gpu_levers]


def _set(job: ContainerHistory, lever: GpuLever, now: int, part: float) -> GpuLever:
    """Return a lever that is set to a part of the period, at each look or where it differs much. A
    new one is so after a look, which tells what a step takes."""
    is_new, stays = lever.had is None, abs(part - lever.part) <= _NEAR * lever.part
    if not _is_due(lever, now) and (is_new or stays):
        return lever
    return replace(_begun(job, lever, now), part=part)


def _slices(levers: Sequence[GpuLever], size: int) -> list[float]:
    """Return how many of so many GPUs each job has: equal slices of the time of all that run, but
    for those that want less. Turns are spread over the period as `TurnQueues` spreads them."""
    most = [math.inf if lever.most is None else lever.most for lever in levers]
    paused = [number for number, lever in enumerate(levers) if lever.part < _FREE_PART]
    turns = math.fsum(levers[number].part for number in paused)
    spare = max(0.0, 1 - turns) / max(1, len(paused))
    begins, begin = {}, 0.0
    for number in paused:
        begins[number] = begin
        begin += levers[number].part + spare
    had = [0.0] * len(levers)
    for point in range(_POINTS):
        runs = [
            number
            for number, lever in enumerate(levers)
            if number not in begins or (point / _POINTS - begins[number]) % 1 < lever.part
        ]
        left = float(size)
        for others, number in enumerate(sorted(runs, key=most.__getitem__), 1 - len(runs)):
            own = min(most[number], left / (1 - others))
            had[number] += own / _POINTS
            left -= own
    return had


def lever_settings(host: HostHistory, queue: QueueParameters) -> LeverSettings:
    """Return the settings that bring jobs to their shares of GPUs, and what there is to say."""
    settings: dict[str, Settings] = {}
    notes: dict[str, str] = {}
    period_s = queue.gpu_period
    for first, _, jobs in _groups(host):
        for number, job in enumerate(jobs):
            lever = job.use.gpu_use.lever
            if lever is None:
                notes[job.id] = f"shares {short_uuid(first)}: nothing is asked of it"
                continue
            how: Settings = {} if lever.by_duty else {"cpus": lever.cpus}
            what = "all the time" if lever.by_duty else "by its CPUs, no quota"
            if lever.by_duty and lever.part < _FREE_PART:
                turn_s = round(lever.part * period_s, 3)
                how = {"group": number, "turn_s": turn_s, "queue": first, "period_s": period_s}
                how["asked"] = round(lever.asked, 3)
                if lever.had is not None:
                    how["had"] = round(lever.had, 3)
                what = f"duty, {turn_s:g} s of every {period_s:g} s"
            elif lever.cpus is not None:
                what = f"feed, a quota of {lever.cpus:g} CPUs"
            settings[job.id] = how
            had = "" if lever.had is None else f", had {lever.had:.2f}"
            notes[job.id] = f"{lever.asked:.2f} of {short_uuid(first)} asked{had}: {what}"
    is_timed = any("turn_s" in setting for setting in settings.values())
    note = "shares of GPUs by parts of the time" if is_timed else ""
    return LeverSettings(notes, settings=settings, note=note)


def _may_be_paused(host: HostHistory, job: ContainerHistory) -> bool:
    """Tell whether a job that uses a GPU has a share of it, and all of its containers may be
    paused."""
    given = host.decision.allocations.get(job.id)
    return (
        given is not None
        and given.share is not None
        and not job.membership.is_spread(host.jobs_elsewhere)
        and job.may_be_paused
        and not is_serving(job)
    )
