"""What users ask for of the realisation: the mode, and the parameters that all policies have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dltools.actions.turn_lengths import MEAN_TURN_S
from dltools.plan.forecast.docker_alone import LATEST
from dltools.plan.policy.parameters import parameter


class Mode(StrEnum):
    """How shares are enforced."""

    QUOTA = "quota"
    WEIGHT = "weight"
    PRIORITY = "priority"
    ROTATE = "rotate"

    @property
    def limit(self) -> str:
        """The limit that it sets. Under `rotate` jobs have weights too: silent ones, feeders, and
        all that waited by weights before."""
        return "cpus" if self is Mode.QUOTA else "weight"


ORDERED = (Mode.PRIORITY, Mode.ROTATE)
"""Modes in which jobs run in order, and a job that has reported nothing must not run beside all."""


@dataclass(frozen=True, slots=True)
class QueueParameters:
    """Parameters of every policy, for jobs that cannot all run at once, and for what owners asked
    for."""

    explore: float = parameter(
        10.0, "CPU seconds for which a job that has not reported twice runs alone"
    )
    latest: float = parameter(
        LATEST,
        "how many times as long as under Docker alone a job may take; at least 2 with shares",
        low=1.0,
        high=100.0,
    )
    feeders: str = parameter(
        "first",
        "whether trainings that feed a GPU go before jobs that compute on CPUs",
        choices=("first", "equal"),
    )
    gpu_period: float = parameter(
        1.0,
        "period in seconds, within which a training runs for its share of a GPU",
        low=0.2,
        high=60.0,
    )
    owners: str = parameter(
        "respect",
        "whether the limits that owners asked for at the start bound every setting",
        choices=("respect", "ignore"),
    )

    users: str = parameter(
        "alone",
        "fair: share the CPUs among users first; alone: among all jobs",
        choices=("alone", "fair"),
    )


DEFAULT_QUEUE = QueueParameters()
"""Those of a user who asks for none."""


@dataclass(frozen=True, slots=True)
class RealisationOptions:
    """What the user asks for."""

    mode: Mode | None = None
    """How shares become settings, None for the way that suits what is observed."""

    quantum_s: float = MEAN_TURN_S
    """The mean length of a turn (s)."""

    queue: QueueParameters = DEFAULT_QUEUE
    """The parameters that all policies have."""

    policy: str = ""
    """The name of the one that orders the jobs."""
