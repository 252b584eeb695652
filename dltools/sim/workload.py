"""The workload of a simulation: jobs with their learning curves, and hosts.

It comes from a workload file, a recording or a generator. `labels_of` and `role_of` give
what dl-probe would see of a job's container.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from dltools import labels
from dltools.errors import DataError
from dltools.labels import Role
from dltools.notation.limits import DEFAULT_WEIGHT
from dltools.notation.resources import parse_cpus
from dltools.observations.roles import NO_SIGN, Judgement
from dltools.text import listed

CURVE_KINDS = ("exponential", "power", "linear", "points")


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """A metric that goes from `start` (nothing learned) towards `end`, over the share u of the work
    done.

    `exponential` end + (start - end) exp(-rate u); `power` end + (start - end) (1 + rate u)^-1;
    `linear` straight from start to end; `points` straight lines between the pairs (share of the
    work, value) of `table`. `noise` is a standard deviation, as a fraction of |start - end|. The
    job's name and the point's number decide the noise, so that the same run has the same noise.
    """

    metric: str = "loss"
    kind: str = "exponential"
    start: float = 2.3
    end: float = 0.1
    rate: float = 5.0
    noise: float = 0.0
    table: tuple[tuple[float, float], ...] = ()

    @property
    def falls(self) -> bool:
        """Whether its metric gets smaller as the job learns."""
        return self.value(1.0) <= self.value(0.0)

    def value(self, share: float) -> float:
        """Return the value without noise after a share of the work."""
        if self.kind == "points":
            return _between(self.table, share)
        if self.kind == "linear":
            left = 1 - min(1.0, share)
        elif self.kind == "power":
            left = 1 / (1 + self.rate * share)
        else:
            left = math.exp(-self.rate * share)
        return self.end + (self.start - self.end) * left

    def reported(self, share: float, name: str, number: int) -> float:
        """Return the value with noise that the job prints as its point of this number."""
        value = self.value(share)
        if self.noise == 0:
            return value
        return value + self.noise * abs(self.start - self.end) * _normal(name, number)


def _between(table: Sequence[tuple[float, float]], share: float) -> float:
    at = bisect.bisect_right(table, (share, math.inf))
    if at == 0:
        return table[0][1]
    if at == len(table):
        return table[-1][1]
    (u0, v0), (u1, v1) = table[at - 1], table[at]
    return v0 + (v1 - v0) * (share - u0) / (u1 - u0) if u1 > u0 else v1


def _normal(name: str, number: int) -> float:
    """Return a standard normal number that is always the same for a name and a number."""
    digest = hashlib.blake2b(f"{name} {number}".encode(), digest_size=16).digest()
    first = (int.from_bytes(digest[:8], "big") + 1) / (2**64 + 1)
    second = int.from_bytes(digest[8:], "big") / 2**64
    return math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """How to start a job as a real container; `docker` are options of docker run. The simulator
    does not use it."""

    image: str = ""
    command: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    docker: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """An interruption of a training after every `every` epochs, such as a validation, a checkpoint
    or the loading of data: `cpu` CPU seconds on `threads` threads, then `sleep` seconds of sleep.
    """

    every: int = 1
    cpu: float = 0.0
    threads: int = 1
    sleep: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Overhead:
    """What a job does beside its work, waits for, and loses by competing.

    `startup` and `shutdown`: seconds on one CPU before and after its work. `phases` interrupt it.
    `wait`: seconds that a training sleeps, for data or requests, per useful CPU second. `device`:
    GPU seconds that it waits for per useful CPU second while it has its GPUs to itself.
    `idle_threads` are alive and sleep. `spin`: the fraction of the measured contention that its
    threads suffer, from 0 (they sleep at barriers) to 1 (they spin).
    """

    startup: float = 0.0
    shutdown: float = 0.0
    phases: tuple[Phase, ...] = ()
    wait: float = 0.0
    device: float = 0.0
    idle_threads: int = 0
    spin: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """What is reserved for a job while it runs: `memory` (bytes), and as many GPUs as `gpus` says.
    Those of `gpu_list`, such as 0-1, may be shared."""

    memory: int = 0
    gpus: int = 0
    gpu_list: str = ""

    @property
    def listed_gpus(self) -> tuple[int, ...]:
        """The numbers of the GPUs that it may share with other jobs."""
        return tuple(parse_cpus(self.gpu_list)) if self.gpu_list else ()

    @property
    def device_count(self) -> int:
        """How many devices it needs."""
        return self.gpus + len(self.listed_gpus)


@dataclass(frozen=True, kw_only=True)
class Requests:
    """What a job answers that serves instead of training, for `duration` seconds: each of its
    threads works on one request after the other for `request` CPU seconds, `think` seconds apart.
    `qoe` is the target of its response time (s). A training has no `request`."""

    request: float = 0.0
    think: float = 0.0
    duration: float = 0.0
    qoe: float | None = None

    @property
    def serves(self) -> bool:
        """Whether it answers requests instead of training."""
        return self.request > 0


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a job's owner has asked for. `cpus` (0: none) and `cpu_weight` limit each of its
    containers. `protected`: no change is allowed. `user`: whose job it is, "" if unknown;
    `priority`: its part among the jobs of its user."""

    cpus: float = 0.0
    cpu_weight: float = DEFAULT_WEIGHT
    protected: bool = False
    user: str = ""
    priority: float = 1.0


@dataclass(frozen=True, slots=True)
class Job(Wishes, Requests, Reserved, Overhead):
    """One job. Its fields, and those of what it is made of, are the keys of a workload file.

    `arrival`: seconds. `work`: useful CPU seconds. `epochs`: how often it reports its metric.
    `first` and `final`: targets of the curve's metric.

    `role`: its role, "" for the usual one: server if it serves, else training. Servers and
    trainings that are not `silent` report; with `length`, trainings also say how many epochs they
    will train, as most logs do.

    `members`: the number of containers that it consists of, each with `threads` threads. They wait
    for each other as threads do. `node`: the host that it starts on, "" for the one with the fewest
    jobs. `checkpoint`: seconds that it takes to stop and to start on another host. `seed` varies
    the noise of its curve. `container` says how to start it for real.
    """

    name: str
    arrival: float = 0.0
    work: float = 60.0
    threads: int = 1
    epochs: int = 100
    curve: LearningCurve = field(default_factory=LearningCurve)
    first: float | None = None
    final: float | None = None
    role: str = ""
    silent: bool = False
    length: bool = True
    members: int = 1
    node: str = ""
    checkpoint: float = 18.0
    seed: int = 0
    container: ContainerSpec = field(default_factory=ContainerSpec)

    @property
    def acts_as(self) -> Role:
        """Its role."""
        if self.role:
            return Role(self.role)
        return Role.SERVER if self.serves else Role.TRAINING

    @property
    def reports(self) -> bool:
        """Whether it reports a metric or response times."""
        return not self.silent and self.acts_as in (Role.TRAINING, Role.SERVER)

    @property
    def all_threads(self) -> int:
        """The number of working threads of all its containers."""
        return self.threads * self.members

    def reported(self, epoch: int) -> float:
        """Return the value that it reports after an epoch; epochs count from 1."""
        name = f"{self.name} {self.seed}" if self.seed else self.name
        return self.curve.reported(epoch / self.epochs, name, epoch)

    def epoch_that_meets(self, target: float | None) -> int | None:
        """Return the first epoch whose value meets a target, None if none does."""
        if target is None:
            return None
        falls = self.curve.falls
        for epoch in range(1, self.epochs + 1):
            value = self.reported(epoch)
            if value <= target if falls else value >= target:
                return epoch
        return None


def labels_of(job: Job, *, clairvoyant: bool = False) -> dict[str, str]:
    """Return the labels of a job's targets, user and priority; with `clairvoyant` also of the
    number of epochs that it will train."""
    values = {labels.PROTECT: "true"} if job.protected else {}
    if job.user:
        values[labels.USER] = job.user
    if job.priority != 1:
        values[labels.PRIORITY] = repr(job.priority)
    if job.serves:
        return values if job.qoe is None else {**values, labels.QOE: repr(job.qoe)}
    if job.first is not None:
        objective = "min" if job.curve.falls else "max"
        values |= {
            labels.METRIC: job.curve.metric,
            labels.TARGET: repr(job.first),
            labels.OBJECTIVE: objective,
        }
        if job.final is not None:
            values[labels.FINAL] = repr(job.final)
    if clairvoyant:
        values[labels.EPOCHS] = str(job.epochs)
    return values


def labels_text(job: Job) -> str | None:
    """Return a job's labels as they stand in a container's row, None without labels."""
    values = labels_of(job)
    return json.dumps(values) if values else None


def role_of(job: Job, *, is_remote: bool = False) -> Judgement:
    """Return the role that dl-probe would report for a job's container before its first report. If
    the container `is_remote`, dl-probe cannot look into it."""
    if is_remote and not job.reports:
        return NO_SIGN
    return Judgement(job.acts_as, "simulated, silent" if job.silent else "simulated")


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One host."""

    name: str
    """What it is called."""

    cpus: float
    """How many CPUs it has."""

    memory: int = 0
    """Bytes, 0 for unlimited."""

    gpus: int = 0
    """How many GPUs it has."""

    remote: bool = False
    """Whether dl-probe runs on another machine, and sees only what the engine reports: neither how
    busy the CPUs are, nor the demand of threads, nor the programs in containers."""

    def holds(self, needs: Reserved) -> bool:
        """Tell whether the empty host has what a job needs."""
        roomy = not self.memory or needs.memory <= self.memory
        has_listed = all(number < self.gpus for number in needs.listed_gpus)
        return roomy and has_listed and needs.device_count <= self.gpus

    def devices_for(self, needs: Reserved, held: Container[int]) -> tuple[int, ...]:
        """Return the numbers of the devices that a job gets where others hold some: those that it
        names, and of the others as many as it needs, as far as they are free."""
        listed = needs.listed_gpus
        free = [n for n in range(self.gpus) if n not in held and n not in listed]
        return tuple(sorted((*listed, *free[: needs.gpus])))


@dataclass(frozen=True, slots=True)
class Workload:
    """What is simulated."""

    jobs: tuple[Job, ...]
    """In order of arrival."""

    hosts: tuple[HostSpec, ...]
    """Those that the jobs run on."""


def workload_of(jobs: Sequence[Job], hosts: Sequence[HostSpec], name: str) -> Workload:
    """Return a workload in order of arrival. `name` names the source in errors. Raises `DataError`
    if there is no job, if a name comes twice, and for a job that fits no host."""
    if not jobs:
        raise DataError(f"{name}: no jobs")
    for kind, names in (("job", [j.name for j in jobs]), ("node", [host.name for host in hosts])):
        seen: set[str] = set()
        for called in names:
            if called in seen:
                raise DataError(f"{name}: two {kind}s are called {called!r}")
            seen.add(called)
    nodes = {host.name: host for host in hosts}
    for job in jobs:
        where = f"{name}: job {job.name}"
        if job.device and not job.device_count:
            raise DataError(f"{where}: device needs a GPU: set gpus or gpu_list")
        if job.node and job.node not in nodes:
            raise DataError(f"{where}: no node is called {job.node!r}; known: {listed([*nodes])}")
        if job.node and not nodes[job.node].holds(job):
            raise DataError(f"{where}: its node lacks the memory or GPUs that it needs")
        if (job.memory or job.device_count) and not any(host.holds(job) for host in hosts):
            raise DataError(f"{where}: no node has the memory and GPUs that it needs")
    return Workload(tuple(sorted(jobs, key=lambda job: (job.arrival, job.name))), tuple(hosts))
