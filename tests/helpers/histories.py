"""Histories of containers and hosts, made point by point."""

from collections.abc import Mapping, Sequence

from dltools.notation.limits import CPU_LIMITS
from dltools.notation.times import MICRO
from dltools.plan.hosts.host_history import HostHistory, RoundTimer
from dltools.plan.signals.container_history import ContainerHistory


def having(job: ContainerHistory, **fields: object) -> ContainerHistory:
    """The job, with values of its own fields, or of those of its limits, use and the like."""
    for field, value in fields.items():
        if field in CPU_LIMITS:
            limits = {**job.in_force.limits, field: value}
            known = {name: one for name, one in limits.items() if one is not None}
            job.in_force = job.in_force._replace(limits=known)
            continue
        part = next(
            (
                name
                for name in ("in_force", "membership", "runtime", "use", "progress")
                if hasattr(getattr(job, name), field)
            ),
            None,
        )
        if part is None or hasattr(job, field):
            setattr(job, field, value)
        elif part in ("use", "progress"):
            setattr(getattr(job, part), field, value)
        else:
            setattr(job, part, getattr(job, part)._replace(**{field: value}))
    return job


Points = Mapping[str, Sequence[tuple[float, float]]]

EVEN = [(0.0, 0.0), (10.0, 5.0), (20.0, 10.0)]
"""Half a core all the time: a quarter of a host of two CPUs."""

ONE_POINT: Points = {"loss": [(0.0, 1.0)]}


def history(
    points: Points | None = None,
    samples: Sequence[tuple[float, float]] = EVEN,
    labels: Mapping[str, str] | None = None,
    started_s: float | None = None,
    name: str = "job",
    arrived_s: float = 0.0,
) -> ContainerHistory:
    """A job with points (second, value) and counter samples (second, CPU seconds)."""
    job = ContainerHistory(name.ljust(64, "c"), name, round(arrived_s * MICRO))
    job.use.started = None if started_s is None else round(started_s * MICRO)
    job.label(labels or {})
    for second, cpu_seconds in samples:
        job.use.add_samples([round(second * MICRO)], [cpu_seconds])
    for metric, pairs in (points or {}).items():
        times = [round(second * MICRO) for second, _ in pairs]
        values = [value for _, value in pairs]
        job.add_points(metric, (times, values, [None] * len(pairs)), curves=True)
    return job


def host_history(
    *jobs: ContainerHistory,
    cpus: float = 2.0,
    sampled_s: float = 0.0,
    timer: RoundTimer | None = None,
    name: str = "host",
) -> HostHistory:
    """A host that was last sampled at a time (seconds), with containers."""
    containers = {job.id: job for job in jobs}
    found = HostHistory(name, cpus, sampled_at=round(sampled_s * MICRO), containers=containers)
    if timer is not None:
        found.timer = timer
    return found
