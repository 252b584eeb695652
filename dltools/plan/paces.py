"""Follows the paces of a host's jobs from round to round, and what they show of contention."""

from __future__ import annotations

from collections.abc import Iterable

from dltools.plan.host_history import HostHistory
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.evaluation_metric import metric_of
from dltools.plan.policy.pace import Mark, Pace, Place
from dltools.plan.realisation.base import Realisation
from dltools.plan.realisation.contention import Contention
from dltools.plan.realisation.mode import Mode, is_serving
from dltools.plan.realisation.queue import Queue
from dltools.plan.spinning import spinning_threads

_FREE_LOOK_S = 2.0
"""How often to look at a first job that has not shown yet how many threads it keeps busy."""


def measured(
    host: HostHistory, silent: Iterable[ContainerHistory], *, is_crowded: bool
) -> Contention:
    """Bring the paces of a host's jobs up to its newest sample; return what they show."""
    now, jobs = host.sampled_at or 0, _followed(host)
    for job in jobs:
        if job.pace is None:
            begin = Mark(now, job.attained)
            job.pace = Pace(metric_of(job) or "", begin, begin)
        job.pace = job.pace.measured(now, job.attained)
    if not is_crowded:
        return host.contention.calm()
    silent = list(silent)
    may_try = not silent and not any(spinning_threads(job) for job in jobs)
    others = host.used_by_others()
    return host.contention.measured(jobs, host.cpus, now, may_try=may_try, others=others)


def note_places(host: HostHistory, found: Realisation, *, is_crowded: bool) -> Queue:
    """Note what each job competes as from now on; return the queue, which asks for a look in time.

    `found`: the settings that hold from now on.
    """
    now = host.sampled_at or 0
    look_s = host.contention.look_s(now)
    for job in _followed(host):
        if job.pace is not None:
            place = _place(job, found) if is_crowded else None
            job.pace = job.pace.in_place(place, now, job.attained)
            if place is Place.FIRST and not job.pace.has_been_free:
                look_s = min(look_s, _FREE_LOOK_S)
    return found.queue.due_by(now, look_s) if is_crowded else found.queue


def forget_places(host: HostHistory) -> None:
    """Forget what jobs compete as: settings that are to harm nobody make none first."""
    for job in _followed(host):
        if job.pace is not None:
            job.pace = job.pace.in_place(None, host.sampled_at or 0, job.attained)


def _followed(host: HostHistory) -> list[ContainerHistory]:
    return [job for job in host.jobs() if (job.threads or 1) > 1 and not is_serving(job)]


def _place(job: ContainerHistory, found: Realisation) -> Place:
    if "turn_s" in found.settings.get(job.id, {}):
        return Place.TURN
    if found.mode is Mode.WEIGHT:
        return Place.SHARES
    if found.mode is Mode.ROTATE:
        return Place.TURN
    position = found.queue.positions.get(job.run_id)
    return Place.FIRST if position is None or position.first else Place.WAITS
