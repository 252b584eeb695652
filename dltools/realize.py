"""From an allocation to engine settings: shares of a node become quotas, weights, turns or cores.

Which is best depends on threads against cores. Threads of one job wait for each other at barriers,
and spin: jobs of several threads that compete for fewer cores lose most of a machine to waiting,
equal hard quotas as much as free competition; strongly unequal weights and taking turns lose
almost nothing (measured, see dltools-policies(7)). All functions here are pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dltools.cpus import format_cpus, parse_cpus
from dltools.plans import Op, Settings
from dltools.policy.base import Grant, Node
from dltools.policy.history import Track
from dltools.schema import DEFAULT_CPU_WEIGHT


class Mode(StrEnum):
    """How shares are enforced."""

    QUOTA = "quota"
    WEIGHT = "weight"
    PRIORITY = "priority"
    ROTATE = "rotate"
    CORES = "cores"


LEAST_CPUS = 0.01
"""Smallest quota in cores: the kernel's least quota of 1 ms in a period of 100 ms."""

LEAST_WEIGHT, MOST_WEIGHT = 2.0, 262144.0
"""Bounds of Docker's CPU shares."""

LEVELS = (1024.0, 10.0, 2.0)
"""Weights of `priority`: a hundred times apart, which cgroup version 2 can tell apart too. The
first is what every container begins with, so that a newcomer gets to say its first word."""

QUANTUM_S = 2.0
"""Mean turn of `rotate` in seconds (measured: 2 s loses a twelfth to changing over)."""

_SHORTEST = 0.1
"""Shortest turn, as a part of the quantum."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user wants: a mode, or None for whatever suits what is observed."""

    mode: Mode | None = None
    quantum_s: float = QUANTUM_S


@dataclass(frozen=True, slots=True)
class Chosen:
    """The mode for a node, and why it."""

    mode: Mode
    why: str
    quantum_s: float = QUANTUM_S


@dataclass(frozen=True, slots=True)
class Realized:
    """A node's settings by job id, all brought about by the operation `op`. `note` says what they
    guarantee, `notes` what there is to say of single jobs."""

    mode: Mode
    why: str
    note: str = ""
    op: Op = Op.UPDATE
    settings: Mapping[str, Settings] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def serving(job: Track) -> bool:
    """Tell whether a job answers requests: it has a response-time target or reports latencies."""
    return job.targets.qoe_s is not None or any(name.startswith("latency") for name in job.metrics)


def choose(choice: Choice, node: Node) -> Chosen:
    """Return the mode for a node: the one asked for, else by its threads against its cores.

    Where trainings of several threads have more threads than there are CPUs: `priority`. Else, and
    beside serving containers, which must not wait their turn: `weight` (ours).
    """
    if choice.mode is not None:
        return Chosen(choice.mode, "as asked", choice.quantum_s)
    threads = [busy_threads(job) for job in node.jobs]
    known = sum(threads)
    crowded = f"{known} threads of {len(threads)} jobs on {node.cpus:g} CPUs"
    if any(serving(job) for job in node.jobs):
        return Chosen(Mode.WEIGHT, "some containers serve: none may wait its turn")
    if known > node.cpus and max(threads, default=1) > 1 and len(threads) > 1:
        return Chosen(Mode.PRIORITY, f"{crowded}: jobs of several threads that compete lose time")
    return Chosen(Mode.WEIGHT, f"{crowded}: nothing is lost by competing")


def busy_threads(job: Track) -> int:
    """Return how many threads a job may keep busy: all it has, 1 where that is unknown."""
    return max(1, job.threads or 1)


def realize(
    chosen: Chosen, node: Node, cpuset: str | None = None, grants: Mapping[str, Grant] | None = None
) -> Realized:
    """Return the settings of each job that is granted a share (`grants`: by default the node's
    last).

    `quota`: a hard cap of share * cpus cores, to 0.001; a share of 1 takes it off. Isolates, and
    leaves CPU idle where a job does not use its share.
    `weight`: weights in proportion to the shares, 1024 for an average share and for a share of 1.
    Work-conserving: what one job leaves the others take.
    `priority`: weights a hundred times apart, in order of how much of what its threads can use each
    is granted, so that as many as there are CPUs for run almost alone. Work-conserving.
    `rotate`: as many trainings as there are CPUs for run at a time, the others are paused; turns in
    proportion to shares. Serving containers are never paused.
    `cores`: disjoint sets out of the CPUs `cpuset`, in proportion to shares, none smaller than a
    job's threads; where that cannot be, all get all.
    """
    given = node.last if grants is None else grants
    shares = {job.id: given[job.id].share for job in node.jobs if job.id in given}
    if node.cpus <= 0 or all(share is None for share in shares.values()):
        return Realized(chosen.mode, chosen.why)
    jobs = [job for job in node.jobs if job.id in shares]
    make: dict[Mode, Callable[[Chosen, list[Track], Shares, float, str | None], Realized]] = {
        Mode.QUOTA: _quotas, Mode.WEIGHT: _weights, Mode.PRIORITY: _priorities,
        Mode.ROTATE: _turns, Mode.CORES: _cores,
    }  # fmt: skip
    return make[chosen.mode](chosen, jobs, shares, node.cpus, cpuset)


Shares = Mapping[str, float | None]


def _quotas(
    chosen: Chosen, jobs: list[Track], shares: Shares, cpus: float, _: str | None
) -> Realized:
    settings: dict[str, Settings] = {}
    total = 0.0
    for job in jobs:
        share = shares[job.id]
        if share is None:
            continue
        cores = round(max(LEAST_CPUS, share * cpus), 3)
        settings[job.id] = {"cpus": None if cores >= cpus else cores}
        total += min(cores, cpus)
    note = f"quotas sum to {total:.3g} of {cpus:g} CPUs; what a job leaves of its own is lost"
    return Realized(chosen.mode, chosen.why, note, settings=settings)


def _weights(chosen: Chosen, jobs: list[Track], shares: Shares, *_: object) -> Realized:
    settings: dict[str, Settings] = {}
    for job in jobs:
        share = shares[job.id]
        if share is None:
            continue
        weight = DEFAULT_CPU_WEIGHT * (1.0 if share >= 1 else share * len(jobs))
        bounded = min(MOST_WEIGHT, max(LEAST_WEIGHT, weight))
        settings[job.id] = {"cpu_weight": float(round(bounded))}
    return Realized(chosen.mode, chosen.why, "work-conserving: what a job leaves the others take",
                    settings=settings)  # fmt: skip


def _order(jobs: list[Track], shares: Shares, cpus: float) -> list[Track]:
    """Return the jobs, who has the greatest part of what its threads can use first: a narrow job
    that has all it can use is not behind a wide one. Among equals, the one that came first."""

    def key(job: Track) -> tuple[float, int, str, str]:
        share = shares[job.id]
        part = (1 / len(jobs) if share is None else share) * cpus / min(busy_threads(job), cpus)
        return -round(part, 9), job.arrived, job.name, job.id

    return sorted(jobs, key=key)


def _packed(jobs: Sequence[Track], cpus: float) -> list[list[Track]]:
    """Return the jobs in groups whose threads fit the CPUs: each in the first group that has room
    for it, in order; one that fits nowhere is a group of its own."""
    groups: list[list[Track]] = []
    rooms: list[float] = []
    for job in jobs:
        need = busy_threads(job)
        at = next((k for k, room in enumerate(rooms) if need <= room), None)
        if at is None:
            groups.append([])
            rooms.append(cpus)
            at = len(groups) - 1
        groups[at].append(job)
        rooms[at] -= need
    return groups


def _priorities(
    chosen: Chosen, jobs: list[Track], shares: Shares, cpus: float, _: str | None
) -> Realized:
    trainings = [job for job in _order(jobs, shares, cpus) if not serving(job)]
    groups = _packed(trainings, cpus)
    settings: dict[str, Settings] = {job.id: {"cpu_weight": LEVELS[0]} for job in jobs}
    notes: dict[str, str] = {}
    for number, group in enumerate(groups):
        for job in group:
            settings[job.id] = {"cpu_weight": LEVELS[min(number, len(LEVELS) - 1)]}
            notes[job.id] = f"{number + 1}. of {len(groups)} in line" if len(groups) > 1 else ""
    note = f"work-conserving; the first of {len(groups)} in line run almost alone"
    return Realized(chosen.mode, chosen.why, note, settings=settings, notes=notes)


def _turns(
    chosen: Chosen, jobs: list[Track], shares: Shares, cpus: float, _: str | None
) -> Realized:
    trainings = [job for job in _order(jobs, shares, cpus) if not serving(job)]
    notes = {job.id: "serves: never paused" for job in jobs if serving(job)}
    groups = _packed(trainings, cpus)
    if len(groups) < 2:
        note = "nobody waits: the trainings fit the CPUs together"
        return Realized(chosen.mode, chosen.why, note, notes=notes)
    sums = [math.fsum(shares[job.id] or 1 / len(jobs) for job in group) for group in groups]
    settings: dict[str, Settings] = {}
    for number, (group, share) in enumerate(zip(groups, sums, strict=True)):
        turn = chosen.quantum_s * len(groups) * share / math.fsum(sums)
        turn = round(max(_SHORTEST * chosen.quantum_s, turn), 3)
        for job in group:
            settings[job.id] = {"group": number, "turn_s": turn}
            notes[job.id] = f"{turn:g} s of every cycle"
    note = f"{len(groups)} groups take turns; the CPUs of whoever has the turn are its own"
    return Realized(chosen.mode, chosen.why, note, Op.ROTATE, settings, notes)


def _cores(
    chosen: Chosen, jobs: list[Track], shares: Shares, cpus: float, cpuset: str | None
) -> Realized:
    every = parse_cpus(cpuset or "")
    everywhere: dict[str, Settings] = {job.id: {"cpuset": None} for job in jobs}
    if not every:
        return Realized(chosen.mode, chosen.why, "nothing is set: the CPUs' numbers are unknown")
    unknown = [job for job in jobs if job.threads is None]
    need = sum(busy_threads(job) for job in jobs)
    if unknown or need > len(every):
        what = (f"the threads of {unknown[0].name} are unknown" if unknown
                else f"{need} threads on {len(every)} CPUs")  # fmt: skip
        note = f"nobody is pinned: {what}, and a set below a job's threads makes it collapse"
        return Realized(chosen.mode, chosen.why, note, settings=everywhere)
    if len(jobs) == 1:
        return Realized(chosen.mode, chosen.why, "one job has all CPUs", settings=everywhere)
    order = _order(jobs, shares, cpus)
    counts = {job.id: busy_threads(job) for job in order}
    for _spare in range(len(every) - need):
        poorest = max(order, key=lambda job: (shares[job.id] or 1 / len(jobs)) / counts[job.id])
        counts[poorest.id] += 1
    settings: dict[str, Settings] = {}
    at = 0
    for job in order:
        settings[job.id] = {"cpuset": format_cpus(every[at : at + counts[job.id]])}
        at += counts[job.id]
    return Realized(chosen.mode, chosen.why, "each job has CPUs of its own", settings=settings)
