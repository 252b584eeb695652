"""Which of a job's metrics it is judged by, and in which direction that metric gets better."""

from __future__ import annotations

from dltools.labels import METRIC, OBJECTIVE
from dltools.observations import metric_names
from dltools.plan.policy.container_history import ContainerHistory


def objective(job: ContainerHistory, metric: str) -> str:
    """Return "max" or "min": the label `dltools.objective`, else what the metric's name says."""
    label = job.labels.get(OBJECTIVE, "").strip().lower()
    if label in ("min", "max"):
        return label
    return metric_names.objective(metric)


def candidates(job: ContainerHistory) -> list[str]:
    """Return the job's metrics, best evaluation metric first.

    The order (ours): the label `dltools.metric`, where the job reports that; else as
    `dltools.observations.metric_names.evaluation_order` has it.
    """
    wanted = job.labels.get(METRIC)
    if wanted in job.metrics:
        return [wanted]
    if len(job.metrics) == 1:
        return list(job.metrics)
    return metric_names.evaluation_order(
        {name: metric_names.Seen(one.peak, one.count) for name, one in job.metrics.items()}
    )


def metric_of(job: ContainerHistory) -> str | None:
    """Return the metric that a job's learning is judged by: its target's, where it reports that,
    else the first one."""
    if job.targets.metric in job.metrics:
        return job.targets.metric
    return next(iter(candidates(job)), None)
