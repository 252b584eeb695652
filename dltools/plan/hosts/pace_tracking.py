"""Follows the paces of a host's jobs.

In each round `rounds` asks for what was measured, makes settings, and notes in which place each job
competes from then on: so it is known what competing for CPUs costs them.
"""

from __future__ import annotations

from dltools.plan.hosts.host_history import HostHistory, Jobs
from dltools.plan.realisation.contention import Contention
from dltools.plan.realisation.feeders import CpusLeft
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.busy_threads import is_serving
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.evaluation_metric import metric_of
from dltools.plan.signals.paces import Mark, Pace, Place

_FREE_LOOK_S = 2.0
"""How often to look at a first job that has not shown yet how many threads it keeps busy."""


def measured_contention(host: HostHistory, jobs: Jobs, *, is_crowded: bool) -> Contention:
    """Bring the paces of a host's jobs up to its newest sample; return what they show."""
    now, followed = host.sampled_at or 0, _followed(jobs)
    for job in followed:
        if job.progress.pace is None:
            begin = Mark(now, job.use.paced_at(now))
            job.progress.pace = Pace(metric_of(job) or "", begin, begin)
        job.progress.pace = job.progress.pace.measured(now, job.use.paced_at(now))
    if not is_crowded:
        return Contention()
    on_cpus = [job for job in followed if not job.use.is_feeder(now)]
    return host.outlook.contention.measured(on_cpus, now, host.load.others.share)


def measured_cpus_left(host: HostHistory, jobs: Jobs, *, is_crowded: bool) -> CpusLeft:
    """Return how many CPUs jobs are to leave to feeders, by the paces of these."""
    now = host.sampled_at or 0
    feeding = {job.id: job for job in _followed(jobs) if job.use.is_feeder(now)}
    if not is_crowded or not feeding:
        return CpusLeft()
    others = [job for job in jobs if job.id not in feeding]
    core = max(map(len, host.load.by_core(host.cpuset)), default=1)
    return host.outlook.cpus_left.measured([*feeding.values()], others, now, host.cpus, core)


def note_places(
    host: HostHistory, jobs: Jobs, realisation: Realisation, *, is_crowded: bool
) -> Queue:
    """Note in which place each job competes from now on, by the settings that hold from now on.
    Return the queue, which asks for a look in time."""
    now, followed = host.sampled_at or 0, _followed(jobs)
    newest = max((job.arrived for job in followed), default=now)
    look_s = host.outlook.contention.look_s(now, newest)
    for job in followed:
        if job.progress.pace is not None:
            place = _place(job, realisation, now) if is_crowded else None
            job.progress.pace = job.progress.pace.in_place(place, now, job.use.paced_at(now))
            if place is Place.FIRST and not job.progress.pace.has_been_free:
                look_s = min(look_s, _FREE_LOOK_S)
    return realisation.queue.due_by(now, look_s) if is_crowded else realisation.queue


def forget_places(host: HostHistory) -> None:
    """Forget in which places jobs compete: settings that may stay for good put no job first."""
    now = host.sampled_at or 0
    for job in _followed(host.jobs()):
        if job.progress.pace is not None:
            job.progress.pace = job.progress.pace.in_place(None, now, job.use.paced_at(now))


def _followed(jobs: Jobs) -> list[ContainerHistory]:
    return [job for job in jobs if (job.use.threads or 1) > 1 and not is_serving(job)]


def _place(job: ContainerHistory, realisation: Realisation, now: int) -> Place:
    if "turn_s" in realisation.settings.get(job.id, {}):
        return Place.TURN
    if realisation.mode in (Mode.WEIGHT, Mode.QUOTA):
        return Place.SHARES
    if realisation.mode is Mode.ROTATE and not job.use.is_feeder(now):
        return Place.TURN
    position = realisation.queue.positions.get(job.run_id)
    return Place.FIRST if position is None or position.first else Place.WAITS
