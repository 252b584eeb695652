"""Jobs and hosts of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dltools.errors import DataError
from dltools.sim.curve import LearningCurve


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """How to start a job as a real container. The simulator does not use it."""

    image: str = ""
    command: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    `arrival`: seconds. `work`: useful CPU seconds. `epochs`: how often it reports its metric.
    `startup` and `shutdown`: seconds on one CPU before and after its work. `memory` (bytes) and
    `gpus` are its own while it runs. `first` and `final`: targets of the curve's metric.
    With `request` (CPU seconds) it serves for `duration` seconds instead of training: one request
    after the other, `think` seconds apart, to be answered in `qoe` seconds.
    `node`: the host that it starts on, "" for the one with the fewest jobs.
    `wait`: the seconds that a training sleeps for each useful CPU second, as for data or requests.
    `checkpoint`: the seconds that it takes to stop and start elsewhere. `spin`: the fraction of the
    measured contention that its threads suffer, from 0 (they sleep at barriers) to 1 (they spin).
    `seed` gives its curve another noise. `container` is for those who start real containers.
    """

    name: str
    arrival: float = 0.0
    work: float = 60.0
    threads: int = 1
    epochs: int = 100
    startup: float = 0.0
    shutdown: float = 0.0
    memory: int = 0
    gpus: int = 0
    curve: LearningCurve = field(default_factory=LearningCurve)
    first: float | None = None
    final: float | None = None
    request: float = 0.0
    think: float = 0.0
    duration: float = 0.0
    qoe: float | None = None
    wait: float = 0.0
    checkpoint: float = 18.0
    spin: float = 1.0
    seed: int = 0
    node: str = ""
    container: ContainerSpec = field(default_factory=ContainerSpec)

    @property
    def serves(self) -> bool:
        """Whether it answers requests instead of training."""
        return self.request > 0

    def reported(self, epoch: int) -> float:
        """Return the value that it reports after an epoch, from 1."""
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
    """One host: its `memory` in bytes (0: as much as jobs ask for), and how many `gpus` it has."""

    name: str
    cpus: float
    memory: int = 0
    gpus: int = 0

    def holds(self, job: Job, memory: int = 0, gpus: int = 0) -> bool:
        """Tell whether a job has room where so much is in use already."""
        roomy = not self.memory or memory + job.memory <= self.memory
        return roomy and gpus + job.gpus <= self.gpus


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of arrival, and the hosts that they run on."""

    jobs: tuple[Job, ...]
    hosts: tuple[HostSpec, ...]


def workload_of(jobs: Sequence[Job], hosts: Sequence[HostSpec], name: str) -> Workload:
    """Return a workload in order of arrival. Raises `DataError` where there is no job, for names
    that come twice, and for a job that fits no host; `name` says where they come from."""
    if not jobs:
        raise DataError(f"{name}: no jobs")
    for kind, names in (("job", [j.name for j in jobs]), ("node", [host.name for host in hosts])):
        seen: set[str] = set()
        for one in names:
            if one in seen:
                raise DataError(f"{name}: two {kind}s are called {one!r}")
            seen.add(one)
    known = {host.name: host for host in hosts}
    for job in jobs:
        if job.node and job.node not in known:
            raise DataError(f"{name}: job {job.name}: no node is called {job.node!r}; known: "
                            f"{', '.join(known)}")  # fmt: skip
        if job.node and not known[job.node].holds(job):
            raise DataError(f"{name}: job {job.name}: its node has not its memory and GPUs")
        if (job.memory or job.gpus) and not any(host.holds(job) for host in hosts):
            raise DataError(f"{name}: job {job.name}: no node has its memory and GPUs")
    return Workload(tuple(sorted(jobs, key=lambda job: (job.arrival, job.name))), tuple(hosts))
