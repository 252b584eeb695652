"""Jobs and nodes of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dltools.errors import DataError
from dltools.sim.curve import LearningCurve


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `arrival` in seconds; `work` in useful CPU seconds; `epochs` is how often it reports
    its metric; `startup` the seconds on one CPU before its first work. `first` and `final` are
    targets of the curve's metric. With `request` (CPU seconds) it serves for `duration` seconds
    instead: one request after the other, `think` seconds apart, to be answered in `qoe` seconds.
    `memory` in bytes and `gpus` are what nobody else may have while it runs. `checkpoint` is how
    many seconds it takes to stop and start elsewhere; `spin` how much of the measured contention
    its threads suffer, from 0 (they sleep at barriers) to 1 (they spin). `seed` makes the noise of
    its curve another."""

    name: str
    arrival: float = 0.0
    work: float = 60.0
    threads: int = 1
    epochs: int = 100
    startup: float = 0.0
    memory: int = 0
    gpus: int = 0
    curve: LearningCurve = field(default_factory=LearningCurve)
    first: float | None = None
    final: float | None = None
    request: float = 0.0
    think: float = 0.0
    duration: float = 0.0
    qoe: float | None = None
    checkpoint: float = 18.0
    spin: float = 1.0
    seed: int = 0

    @property
    def serves(self) -> bool:
        """Whether it answers requests instead of training."""
        return self.request > 0

    def reported(self, epoch: int) -> float:
        """Return the value of its metric that it says after an epoch, from 1."""
        name = f"{self.name} {self.seed}" if self.seed else self.name
        return self.curve.reported(epoch / self.epochs, name, epoch)

    def epoch_that_meets(self, target: float | None) -> int | None:
        """Return the first epoch whose value meets a target, None where none does."""
        if target is None:
            return None
        falls = self.curve.falls
        for epoch in range(1, self.epochs + 1):
            value = self.reported(epoch)
            if value <= target if falls else value >= target:
                return epoch
        return None


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One machine: `memory` in bytes, 0 for as much as anybody wants; `gpus` to be handed out."""

    name: str
    cpus: float
    memory: int = 0
    gpus: int = 0

    def holds(self, job: Job, memory: int = 0, gpus: int = 0) -> bool:
        """Tell whether a job has room beside what is taken already."""
        roomy = not self.memory or memory + job.memory <= self.memory
        return roomy and gpus + job.gpus <= self.gpus


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of arrival, and the machines they run on."""

    jobs: tuple[Job, ...]
    nodes: tuple[HostSpec, ...]


def checked(jobs: Sequence[Job], nodes: Sequence[HostSpec], name: str) -> Workload:
    """Return a workload in order of arrival. Raises `DataError` where there is no job, for names
    that come twice, and for a job that fits no machine."""
    if not jobs:
        raise DataError(f"{name}: no jobs")
    for kind, names in (("job", [j.name for j in jobs]), ("node", [n.name for n in nodes])):
        seen: set[str] = set()
        for one in names:
            if one in seen:
                raise DataError(f"{name}: two {kind}s are called {one!r}")
            seen.add(one)
    for job in jobs:
        if (job.memory or job.gpus) and not any(node.holds(job) for node in nodes):
            raise DataError(f"{name}: job {job.name}: no node has its memory and GPUs")
    return Workload(tuple(sorted(jobs, key=lambda job: (job.arrival, job.name))), tuple(nodes))
