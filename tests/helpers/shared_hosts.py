"""Hosts whose jobs have shares, and the settings that these become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.queue import Queue
from dltools.plan.realisation.realise import realise
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.metric_series import Series


def job(name: str, threads: int | None = 1, arrived: int = 0, **labels: str) -> ContainerHistory:
    """A job that has reported losses; `dltools_qoe="0.1"` is the label dltools.qoe."""
    container = ContainerHistory(name, name, "h", arrived, threads=threads)
    container.label({key.replace("_", "."): value for key, value in labels.items()})
    container.metrics["loss"] = Series()
    container.reports = 2
    container.judge()
    return container


def host(
    *jobs: ContainerHistory, cpus: float = 2.0, shares: dict[str, float | None] | None = None
) -> HostState:
    """A host whose jobs were last allocated these shares."""
    allocations = {name: Allocation(share, "-", "") for name, share in (shares or {}).items()}
    return HostState("h", cpus, jobs, allocations)


def settings_of(mode: Mode, found: HostState, cpuset: str | None = "0-1") -> dict[str, Any]:
    """The settings by job that the shares become, on CPUs `cpuset`."""
    return dict(realise(ModeChoice(mode, ""), found, cpuset).settings)


def first_jobs(found: HostState, seconds: list[int]) -> Iterator[str]:
    """Yield the names of the jobs at the first level, at each of these times."""
    queue = Queue()
    for now in seconds:
        made = realise(ModeChoice(Mode.PRIORITY, ""), found, queue=queue, now=now * 1_000_000)
        queue = made.queue
        yield "".join(sorted(k for k, v in made.settings.items() if v["cpu_weight"] == 1024))
