"""How shares are enforced, and which way suits a host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dltools.plan.policy.base import HostState
from dltools.plan.policy.container_history import ContainerHistory


class Mode(StrEnum):
    """How shares are enforced."""

    QUOTA = "quota"
    WEIGHT = "weight"
    PRIORITY = "priority"
    ROTATE = "rotate"
    CORES = "cores"


QUANTUM_S = 2.0
"""Mean turn of `rotate` in seconds (measured: 2 s loses a twelfth to changing over)."""


@dataclass(frozen=True, slots=True)
class RealisationOptions:
    """What the user asks for: a mode, or None for the one that suits what is observed; and the mean
    length of a turn in seconds."""

    mode: Mode | None = None
    quantum_s: float = QUANTUM_S


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The mode for a host, why, and the mean length of a turn in seconds."""

    mode: Mode
    why: str
    quantum_s: float = QUANTUM_S


def choose_mode(options: RealisationOptions, host: HostState) -> ModeChoice:
    """Return the mode for a host: the one asked for, else by its threads against its cores.

    Where trainings of several threads have more threads than there are CPUs: `priority`. Else, and
    beside serving containers, which must not wait for a turn: `weight` (ours).
    """
    if options.mode is not None:
        return ModeChoice(options.mode, "as asked", options.quantum_s)
    threads = [busy_threads(job) for job in host.jobs]
    total = sum(threads)
    crowded = f"{total} threads of {len(threads)} jobs on {host.cpus:g} CPUs"
    if any(is_serving(job) for job in host.jobs):
        return ModeChoice(Mode.WEIGHT, "some containers serve: none may wait for a turn")
    if total > host.cpus and max(threads, default=1) > 1 and len(threads) > 1:
        why = f"{crowded}: jobs of several threads that compete lose time"
        return ModeChoice(Mode.PRIORITY, why)
    return ModeChoice(Mode.WEIGHT, f"{crowded}: nothing is lost by competing")


def is_serving(job: ContainerHistory) -> bool:
    """Tell whether a job answers requests: it has a response-time target or reports latencies."""
    return job.targets.qoe_s is not None or any(name.startswith("latency") for name in job.metrics)


def busy_threads(job: ContainerHistory) -> int:
    """Return how many threads a job may keep busy: all it has, 1 where that is unknown."""
    return max(1, job.threads or 1)
