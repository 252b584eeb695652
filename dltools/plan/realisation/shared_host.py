"""What each mode is given, a `SharedHost`, and what it returns, a `Realisation`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dltools.actions.settings import Settings
from dltools.notation.limits import DEFAULT_WEIGHT
from dltools.plan.forecast.docker_alone import Due
from dltools.plan.policy.interface import Allocation
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.signals.busy_cpus import COMPETE
from dltools.plan.signals.busy_threads import needed_cpus
from dltools.plan.signals.job import Job

TURN_NOTE = "has waited long enough: its turn"

MILD_NOTE = "weights within a factor of four: no next plan is known, and what is set may stay"


@dataclass(frozen=True, slots=True)
class Realisation:
    """A host's settings, and what there is to say of them."""

    mode: Mode
    """The mode in which they were made."""

    why: str
    """Why in this mode."""

    note: str = ""
    """What the settings guarantee, "" for nothing."""

    settings: Mapping[str, Settings] = field(default_factory=dict)
    """By job id."""

    notes: Mapping[str, str] = field(default_factory=dict)
    """What there is to say of single jobs, by job id."""

    queue: Queue = field(default_factory=Queue)
    """The queue after the change."""

    ends_s: Mapping[str, float] = field(default_factory=dict)
    """In how many seconds jobs are forecast to end, by run."""

    unable: str = ""
    """Why nothing of it can be done, "" where it can."""


def allocations_of(jobs: Sequence[Job], given: Mapping[str, Allocation]) -> dict[str, Allocation]:
    """Return each job's allocation, by id: that which it was given, or, where it has no share, one
    that limits nobody."""
    unknown = Allocation(1 / len(jobs), "-", "has reported nothing yet", unlimited=True)
    pairs = ((job.id, given.get(job.id)) for job in jobs)
    return {key: unknown if part is None or part.share is None else part for key, part in pairs}


@dataclass(frozen=True, slots=True)
class SharedHost:
    """What settings are made from.

    `jobs`: those with a share; `allocations`: by job id; `cpus`: of the host; `cores`: the CPUs of
    each core that containers may have, () where unknown; `queue`: before the change; `now`:
    microseconds. `exploring`: ids of new jobs that run alone until they have reported twice, or
    have had their CPU seconds. `jobs_elsewhere`: jobs of which other hosts run containers.
    `others`: the share of the CPUs that programs use which are no jobs, None where that is unknown.
    `dues`: until when jobs can wait, by run (see `docker_alone`). `needs`: the CPUs that jobs can
    use, by id, as far as that was asked for.
    """

    choice: ModeChoice
    jobs: list[Job]
    allocations: Mapping[str, Allocation]
    cpus: float
    cores: Sequence[Sequence[int]]
    queue: Queue
    now: int
    exploring: frozenset[str] = frozenset()
    jobs_elsewhere: frozenset[str] = frozenset()
    others: float | None = None
    dues: Mapping[str, Due] = field(default_factory=dict)
    needs: dict[str, float] = field(default_factory=dict)

    def need(self, job: Job) -> float:
        """Return how many CPUs a job can use."""
        if job.id not in self.needs:
            self.needs[job.id] = needed_cpus(job)
        return self.needs[job.id]

    @property
    def others_compete(self) -> bool:
        """Whether programs that are no jobs compete for the CPUs."""
        return self.others is not None and self.others >= COMPETE

    def share(self, job: Job) -> float:
        """Return a job's share; where the job is unlimited, the mean of the others, so that nobody
        is served better for not being understood."""
        own = self.allocations[job.id]
        if not own.unlimited and own.share is not None:
            return own.share
        limited = (given for given in self.allocations.values() if not given.unlimited)
        shares = [given.share for given in limited if given.share is not None]
        return math.fsum(shares) / len(shares) if shares else 1 / len(self.jobs)

    def wishes(self) -> list[tuple[float, list[Job]]]:
        """Return the jobs whose owners asked for the same weight, the smallest weight first, as a
        multiple of the default; all together where owners do not count."""
        if self.choice.queue.owners != "respect":
            return [(1.0, self.jobs)]
        by_weight: dict[int, list[Job]] = {}
        for job in self.jobs:
            by_weight.setdefault(round(job.owner.ratio * DEFAULT_WEIGHT), []).append(job)
        return [(jobs[0].owner.ratio, jobs) for _, jobs in sorted(by_weight.items())]

    def most_cpus(self, job: Job) -> float:
        """Return the largest quota that a job can have, in cores."""
        owners = job.owner.cpus if self.choice.queue.owners == "respect" else None
        return self.cpus if owners is None else min(owners, self.cpus)

    def is_unlimited(self, job: Job) -> bool:
        """Tell whether a job is not limited, whatever its share."""
        return self.allocations[job.id].unlimited

    def realisation(self, note: str, **parts: Any) -> Realisation:
        """Return a realisation in the chosen mode."""
        return Realisation(self.choice.mode, self.choice.why, note, **parts)
