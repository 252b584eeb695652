"""Random hosts with everybody who lives on one, and what each container does there under a policy,
against Docker alone.

A host has 2 to 128 CPUs, no GPU or up to 8, and up to 30 containers: trainings on CPUs and GPUs,
silent ones, distributed ones, servers, notebooks, databases; with phases, owners' limits, sleeping
threads. The same seed gives the same host.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from helpers.simulations import simulation

from dltools.observations.outcomes import JobResult
from dltools.plan.forecast.docker_alone import LATEST
from dltools.plan.realisation.options import Mode
from dltools.sim.reaction import DELAY_S, Reaction
from dltools.sim.workload import HostSpec, Job, LearningCurve, Phase, Workload, workload_of

LIFE_S = 400.0
"""For how long servers, notebooks and databases run."""

INTERVAL_S = 2.0
PATIENCE_S = 100.0
"""The longest wait of one of two jobs for its turn (dltools-modes(7))."""


@dataclass(frozen=True, slots=True)
class Lot:
    """What became of a container: the work that it did in its life, or the speed at which it ended,
    as a ratio to that under Docker alone. `bound`: the ratio that a waiting job is promised.
    `is_slowed`: others slow it by a tenth or more under Docker alone. `completions`: the seconds in
    which it ends, and those under Docker alone; 0 for what does not end by itself."""

    name: str
    ratio: float
    is_training: bool
    bound: float = 0.0
    is_slowed: bool = False
    completions: tuple[float, float] = (0.0, 0.0)


def random_host(seed: int) -> Workload:
    """Return the host of a seed, and its containers."""
    chance = random.Random(f"strangers {seed}")
    cpus = chance.choice((2, 2, 4, 4, 8, 8, 16, 32, 64, 128))
    gpus = chance.choice((0, 0, 1, 2, 4, 8)) if cpus >= 4 else chance.choice((0, 0, 1))
    host = HostSpec("host", float(cpus), gpus=gpus, remote=chance.random() < 0.15)
    count = chance.choice((1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30))
    jobs = [_container(chance, number, cpus, gpus) for number in range(count)]
    trainings = [job for job in jobs if not job.serves]
    asked = sum(job.work for job in trainings) / cpus
    scale = min(1.0, LIFE_S / asked) if asked else 1.0
    jobs = [job if job.serves else replace(job, work=job.work * scale) for job in jobs]
    return workload_of(jobs, [host], f"seed {seed}")


def _container(chance: random.Random, number: int, cpus: int, gpus: int) -> Job:
    kinds = ["cpu"] * 6 + ["silent", "distributed", "server", "notebook", "database", "prepare"]
    kind = chance.choice(kinds + ["gpu"] * 8 if gpus else kinds)
    name, arrival = f"{kind}-{number}", round(chance.choice((0.0, chance.uniform(0, 150))), 1)
    weight = chance.choice((1024.0,) * 8 + (256.0, 512.0, 2048.0))
    if kind in ("server", "notebook", "database", "prepare"):
        return replace(_program(chance, kind, cpus), name=name, arrival=arrival, cpu_weight=weight)
    job = _training(chance, cpus)
    if kind == "gpu":
        first = chance.randrange(gpus)
        several = f"{first}-{first + 1}" if first + 1 < gpus and chance.random() < 0.2 else ""
        job = replace(
            job,
            threads=chance.choice((1, 2, 4)),
            idle_threads=chance.choice((8, 56, 120)),
            device=chance.choice((0.3, 1.0, 3.0, 10.0)),
            gpu_list=several or str(first),
            wait=0.0,
            work=chance.uniform(5, 60),
        )
    elif kind == "distributed":
        job = replace(job, members=chance.choice((2, 3, 4)), threads=max(1, job.threads // 2))
    return replace(
        job,
        name=name,
        arrival=arrival,
        cpu_weight=weight,
        silent=kind == "silent",
        protected=chance.random() < 0.05,
    )


def _training(chance: random.Random, cpus: int) -> Job:
    threads = min(chance.choice((1, 1, 2, 2, 4, 8, cpus)), 2 * cpus)
    alone_s = 10 * 20 ** chance.random()
    epochs = chance.choice((5, 20, 60, 200))
    shape, rate = chance.choice(("exponential", "power")), chance.choice((2.0, 6.0, 20.0))
    falls = LearningCurve("loss", shape, 2.3, chance.uniform(0.05, 1.0), rate, 0.01)
    rises = LearningCurve("val_accuracy", "exponential", 0.1, 0.9, chance.choice((3.0, 9.0)), 0.005)
    curve = chance.choice((falls, falls, rises))
    has_target = chance.random() < 0.3
    quota = chance.choice((0.0,) * 8 + (0.5, 1.0))
    return Job(
        "",
        work=alone_s * min(threads, cpus),
        threads=threads,
        epochs=epochs,
        curve=curve,
        startup=chance.choice((0.0, 2.0, 6.0)),
        spin=chance.choice((0.0, 0.5, 1.0, 1.0)),
        wait=chance.choice((0.0, 0.0, 0.0, 0.3, 1.0)),
        phases=_phases(chance, epochs, threads),
        first=curve.value(0.5) if has_target else None,
        cpus=quota if quota < cpus else 0.0,
    )


def _phases(chance: random.Random, epochs: int, threads: int) -> tuple[Phase, ...]:
    if chance.random() < 0.6:
        return ()
    every = max(1, epochs // chance.choice((2, 5, 10)))
    validation = Phase(every, cpu=chance.uniform(1, 8) * threads, threads=threads)
    checkpoint = Phase(every, cpu=0.5, sleep=chance.uniform(1, 8))
    data = Phase(every, cpu=chance.uniform(2, 10), threads=1, sleep=chance.uniform(0, 15))
    return tuple(chance.sample((validation, checkpoint, data), chance.choice((1, 2))))


def _program(chance: random.Random, kind: str, cpus: int) -> Job:
    if kind == "server":
        request = chance.choice((0.005, 0.02, 0.1))
        qoe = request * chance.choice((1.5, 3.0)) if chance.random() < 0.5 else None
        return Job(
            "",
            request=request,
            think=chance.choice((0.0, 0.05, 0.5)),
            duration=LIFE_S,
            threads=chance.choice((1, 1, 2)),
            qoe=qoe,
            role="server",
        )
    if kind == "notebook":
        return Job("", request=0.05, think=0.95, duration=LIFE_S, role="interactive")
    if kind == "database":
        return Job(
            "",
            request=0.05,
            think=chance.choice((0.0, 0.05, 0.2)),
            duration=LIFE_S,
            threads=min(cpus, chance.choice((1, 2, 4))),
            role="other",
        )
    return Job("", request=1.0, duration=chance.uniform(10, 60), role="other")


def simulate(workload: Workload, policy: str, mode: Mode | None) -> list[JobResult]:
    return simulation(workload, policy, mode, reaction=Reaction(INTERVAL_S, DELAY_S)).run()


def lots(
    workload: Workload,
    results: Sequence[JobResult],
    under_docker: Sequence[JobResult],
    alone: Mapping[str, float],
) -> list[Lot]:
    """Return what became of each container, against the results under Docker alone; `alone` are the
    seconds that trainings take alone."""
    trained = [one for job, one in zip(workload.jobs, results, strict=True) if not job.serves]
    lives = [(one.start or 0.0, one.finish or math.inf) for one in trained]
    found = []
    for job, mine, docker in zip(workload.jobs, results, under_docker, strict=True):
        if job.serves:
            ratio = mine.cpu / docker.cpu if docker.cpu > 0 else 1.0
            found.append(Lot(job.name, ratio, is_training=False))
        elif docker.completion is not None:
            ratio = docker.completion / (mine.completion or math.inf)
            life = (mine.start or 0.0, mine.finish or math.inf)
            promised_s = PATIENCE_S + LATEST * _most_at_once(lives, *life) * alone[job.name]
            found.append(
                Lot(
                    job.name,
                    ratio,
                    True,
                    docker.completion / promised_s,
                    docker.completion > 1.1 * alone[job.name],
                    (mine.completion or math.inf, docker.completion),
                )
            )
    return found


def seconds_alone(workload: Workload) -> dict[str, float]:
    found = {}
    for job in workload.jobs:
        if not job.serves:
            (one,) = simulate(replace(workload, jobs=(replace(job, arrival=0.0),)), "noop", None)
            found[job.name] = one.completion or math.inf
    return found


def _most_at_once(lives: Sequence[tuple[float, float]], begin: float, end: float) -> int:
    """Return how many jobs run at once at the most, within a time."""
    starts = [begin, *(start for start, _ in lives if begin <= start < end)]
    return max(sum(start <= time < stop for start, stop in lives) for time in starts)
