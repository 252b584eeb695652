"""Generates workloads: arrivals at fixed gaps, at random, in a burst, or as a Poisson process."""

from __future__ import annotations

import random
from dataclasses import replace

from dltools.sim.workload import Job, LearningCurve

_NOISE = 0.01

ARRIVALS = ("fixed", "random", "poisson", "burst")

TRAININGS = (
    Job("vae", work=46.0, threads=2, curve=LearningCurve("loss", "exponential", 0.7, 0.1, 6.0)),
    Job("gru", work=42.0, threads=2, curve=LearningCurve("loss", "power", 2.3, 0.2, 12.0)),
    Job("cnn", work=30.0, threads=2, curve=LearningCurve("loss", "exponential", 2.3, 0.05, 9.0)),
    Job("mlp", work=60.0, threads=1, curve=LearningCurve("loss", "exponential", 2.3, 0.3, 3.0)),
    Job("lstm", work=120.0, threads=2, curve=LearningCurve("loss", "power", 6.0, 2.0, 20.0)),
)
"""Kinds of trainings: three with the work and threads of real ones (23, 21 and 15 s alone on two
CPUs, measured), and two longer ones."""


def arrivals(kind: str, n: int, gap: float, chance: random.Random) -> list[float]:
    """Return n arrival times in seconds, sorted, with a mean gap of `gap`.

    `fixed`: all gaps are the same; `random`: anywhere within n gaps; `poisson`: gaps drawn from an
    exponential distribution; `burst`: all at once.
    """
    if kind == "burst":
        return [0.0] * n
    if kind == "fixed":
        return [gap * number for number in range(n)]
    if kind == "random":
        return sorted(chance.uniform(0, gap * n) for _ in range(n))
    times, now = [], 0.0
    for _ in range(n):
        times.append(now)
        now += chance.expovariate(1 / gap) if gap > 0 else 0.0
    return times


def trainings(n: int, kind: str, gap: float, seed: int) -> list[Job]:
    """Return n trainings of random kinds, each with half to double the usual work of its kind."""
    chance = random.Random(f"{seed} {kind} {n}")
    jobs = []
    for number, arrival in enumerate(arrivals(kind, n, gap, chance), 1):
        model = chance.choice(TRAININGS)
        curve = replace(model.curve, noise=_NOISE)
        work = model.work * 2 ** chance.uniform(-1, 1)
        name = f"{model.name}-{number:0{len(str(n))}d}"
        jobs.append(replace(model, name=name, arrival=arrival, work=work, curve=curve))
    return jobs
