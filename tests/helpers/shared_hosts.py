"""Hosts whose jobs have shares, and the settings that these become."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dltools.notation.times import MICRO
from dltools.plan.forecast.docker_alone import DockerAlone
from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.realisation.realise import Situation, realise
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.busy_threads import needed_cpus
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.metric_series import Series
from dltools.plan.signals.resource_use import Use


def job(name: str, threads: int | None = 1, arrived: int = 0, **labels: str) -> ContainerHistory:
    container = ContainerHistory(name, name, arrived, use=Use(threads=threads))
    container.label({key.replace("_", "."): value for key, value in labels.items()})
    container.progress.metrics["loss"] = Series()
    container.progress.reports = 2
    container.judge()
    return container


def host(
    *jobs: ContainerHistory, cpus: float = 2.0, shares: dict[str, float | None] | None = None
) -> HostState:
    allocations = {name: Allocation(share, "-", "") for name, share in (shares or {}).items()}
    return HostState("h", cpus, jobs, allocations)


def realised(
    choice: ModeChoice, found: HostState, *, now: int = 0, **situation: Any
) -> Realisation:
    """What a choice of mode makes of a host at a time (microseconds)."""
    return realise(choice, replace(found, sampled_at=now), Situation(**situation))


def settings_of(mode: Mode, found: HostState) -> dict[str, Any]:
    """The settings by job that the shares become."""
    return dict(realised(ModeChoice(mode, ""), found).settings)


def played(
    jobs: list[ContainerHistory],
    shares: dict[str, float | None],
    cpus: float = 2.0,
    *,
    seconds: int,
    every: int = 1,
) -> dict[str, float]:
    """Return the CPU seconds that jobs without an end have had in order after a while, where those
    at the first level have what they can use, and the others what these leave."""
    queue, alone = Queue(), DockerAlone()
    had = dict.fromkeys(shares, 0.0)
    for now in range(0, seconds, every):
        for one in jobs:
            one.use.add_samples([now * MICRO], [had[one.id]])
        alone = alone.after(now * MICRO, jobs, cpus)
        made = realised(
            ModeChoice(Mode.PRIORITY, ""),
            host(*jobs, cpus=cpus, shares=shares),
            queue=queue,
            now=now * MICRO,
            dues=alone.dues(now * MICRO, cpus),
        )
        queue = made.queue
        room = cpus
        for one in sorted(jobs, key=lambda one: -made.settings[one.id]["weight"]):
            used = min(room, needed_cpus(one))
            had[one.id] += every * used
            room -= used
    return had


def first_jobs(found: HostState, seconds: list[int]) -> Iterator[str]:
    """Yield the names of the jobs at the first level, at each of these times."""
    queue = Queue()
    for now in seconds:
        made = realised(ModeChoice(Mode.PRIORITY, ""), found, queue=queue, now=now * 1_000_000)
        queue = made.queue
        yield "".join(sorted(k for k, v in made.settings.items() if v["weight"] == 1024))
