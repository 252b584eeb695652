"""Histories of containers, made point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dltools.plan.policy.container_history import MICRO, ContainerHistory

Points = Mapping[str, Sequence[tuple[float, float]]]

EVEN = [(0.0, 0.0), (10.0, 5.0), (20.0, 10.0)]
"""Half a core all the time: a quarter of the host."""


def history(
    points: Points | None = None,
    samples: Sequence[tuple[float, float]] = EVEN,
    labels: Mapping[str, str] | None = None,
    started_s: float | None = None,
) -> ContainerHistory:
    """A job with points (second, value) and counter samples (second, CPU seconds)."""
    job = ContainerHistory("c" * 64, "job", "host", arrived=0)
    job.started = None if started_s is None else round(started_s * MICRO)
    job.label(labels or {})
    for second, cpu_seconds in samples:
        job.add_sample(round(second * MICRO), cpu_seconds)
    for metric, pairs in (points or {}).items():
        times = [round(second * MICRO) for second, _ in pairs]
        values = [value for _, value in pairs]
        job.add_points(metric, times, values, [None] * len(pairs), curves=True)
    return job
