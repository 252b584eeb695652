"""What policies see of the jobs of a simulation: their histories, as dl-plan would keep them."""

from __future__ import annotations

import math

from dltools.notation.limits import DEFAULT_WEIGHT, Limits
from dltools.notation.times import MICRO
from dltools.plan.policy.interface import Requirements
from dltools.plan.signals.container_history import ContainerHistory, Standing
from dltools.plan.signals.in_force import InForce, Member, Membership, Owner
from dltools.plan.signals.resource_use import Use
from dltools.sim import devices
from dltools.sim.cpu_sharing import PAUSED
from dltools.sim.simulated_job import SimulatedJob
from dltools.sim.workload import HostSpec, labels_of, role_of


def new_history(
    started: SimulatedJob, host: HostSpec, now: float, *, clairvoyant: bool
) -> ContainerHistory:
    """Return the history of a job that starts on a host. With `clairvoyant` it says how many epochs
    the job will train."""
    job, micros, migrations = started.job, round(now * MICRO), started.result.migrations
    history = ContainerHistory(
        f"{job.name}#{migrations}" if migrations else job.name,
        job.name,
        micros,
        use=Use(micros, job.all_threads + job.idle_threads),
        standing=Standing(observed=role_of(job, is_remote=host.remote)),
        owner=Owner(job.cpus * job.members or None, job.cpu_weight / DEFAULT_WEIGHT, is_known=True),
    )
    if job.members > 1:
        names = [f"{job.name}-{number}" for number in range(job.members)]
        members = tuple(Member(name, name) for name in names)
        history.membership = Membership(job.name, members, job.members)
    history.label(labels_of(job, clairvoyant=clairvoyant))
    return history


def sample(
    job: SimulatedJob, micros: int, requirements: Requirements, *, sees_threads: bool
) -> bool:
    """Bring a job's history up to a time (microseconds); tell whether a target was met.
    `sees_threads`: whether the demand of its threads is observed."""
    samples = job.history.use.samples
    if not samples or samples[-1][0] < micros:
        _add_sample(job, micros, sees_threads=sees_threads)
    progress = job.history.progress
    before = progress.met_first, progress.met_final
    if job.unread:
        _add_reports(job, requirements)
    job.forget_reports()
    return (progress.met_first, progress.met_final) != before


def _add_sample(job: SimulatedJob, micros: int, *, sees_threads: bool) -> None:
    history, use, limits = job.history, job.history.use, job.limits
    demand = job.demand
    # At most samples a job that takes turns is paused, although it has work.
    state = PAUSED if "group" in limits and demand > 0 else "running"
    new = [micros], [job.cpu], [demand if sees_threads else math.nan]
    use.note_demand(new, [state], history.in_force)
    now: Limits = {"cpus": limits["cpus"], "weight": job.weight}
    history.in_force = InForce(now, limits.get("turn_s"))
    if used := devices.seen(job):
        history.note_devices([micros], [used])
    if not history.progress.metrics:
        waits_up_to = history.owner.waits_up_to(history.in_force.turn_s)
        use.note_busy(new, [job.weight], waits_up_to)
    use.add_samples([micros], [job.cpu])


def _add_reports(job: SimulatedJob, requirements: Requirements) -> None:
    """Add the reports that are not yet in a job's history."""
    activity, progress = job.activity, job.history.progress
    seconds, values, epochs = zip(*job.unread, strict=True)
    times = [round(time * MICRO) for time in seconds]
    job.history.add_points(activity.metric, (times, values, epochs), curves=requirements.curves)
    progress.step, progress.epoch = epochs[-1], float(activity.reported)
    if job.job.length and not job.job.serves:
        progress.note_counts(job.job.epochs, None)
    positions = (None if epoch is None else float(epoch) for epoch in epochs)
    progress.note_positions(zip(times, epochs, positions, strict=True), job.history.use)
