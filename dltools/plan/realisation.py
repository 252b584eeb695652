"""From an allocation to engine settings: shares of a node become quotas, weights, turns or cores.

Which is best depends on threads against cores. Threads of one job wait for each other at barriers,
and spin: jobs of several threads that compete for fewer cores lose most of a machine to waiting,
equal hard quotas as much as free competition; strongly unequal weights and taking turns lose
almost nothing (measured, see dltools-policies(7)). All functions here are pure.

Nobody is starved: who is free has the default weight, equals take turns, and whoever has had less
than half an equal share for too long gets a turn before all others (`dltools.plan.queue`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dltools.cpus import format_cpus, parse_cpus
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.host_history import HostHistory
from dltools.plan.policy.base import Allocation, HostState
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.queue import Queue, patience_s
from dltools.plan.records import Op, Settings


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
class RealisationOptions:
    """What the user wants: a mode, or None for whatever suits what is observed."""

    mode: Mode | None = None
    quantum_s: float = QUANTUM_S


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The mode for a node, and why it."""

    mode: Mode
    why: str
    quantum_s: float = QUANTUM_S


@dataclass(frozen=True, slots=True)
class Realisation:
    """A node's settings by job id, all brought about by the operation `op`. `note` says what they
    guarantee, `notes` what there is to say of single jobs; `queue` is who waits now."""

    mode: Mode
    why: str
    note: str = ""
    op: Op = Op.UPDATE
    settings: Mapping[str, Settings] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    queue: Queue = field(default_factory=Queue)


@dataclass(frozen=True, slots=True)
class _Case:
    """What settings are made from: the jobs with a share, their grants, the node's CPUs."""

    chosen: ModeChoice
    jobs: list[ContainerHistory]
    allocations: Mapping[str, Allocation]
    cpus: float
    cpuset: str | None
    queue: Queue
    now: int

    def share(self, job: ContainerHistory) -> float:
        """Return a job's share; an equal one where it is free."""
        allocation = self.allocations[job.id]
        return (
            1 / len(self.jobs)
            if allocation.unlimited or allocation.share is None
            else allocation.share
        )

    def is_unlimited(self, job: ContainerHistory) -> bool:
        """Tell whether a job is not limited, whatever its share."""
        return self.allocations[job.id].unlimited


def realise_host(host: HostHistory, options: RealisationOptions) -> Realisation:
    """Return the settings of a host's containers at its newest sample."""
    node = host.node()
    return realise(
        choose(options, node), node, host.cpuset, host.silent(), host.queue, host.sampled_at or 0
    )


def serving(job: ContainerHistory) -> bool:
    """Tell whether a job answers requests: it has a response-time target or reports latencies."""
    return job.targets.qoe_s is not None or any(name.startswith("latency") for name in job.metrics)


def choose(options: RealisationOptions, node: HostState) -> ModeChoice:
    """Return the mode for a node: the one asked for, else by its threads against its cores.

    Where trainings of several threads have more threads than there are CPUs: `priority`. Else, and
    beside serving containers, which must not wait their turn: `weight` (ours).
    """
    if options.mode is not None:
        return ModeChoice(options.mode, "as asked", options.quantum_s)
    threads = [busy_threads(job) for job in node.jobs]
    known = sum(threads)
    crowded = f"{known} threads of {len(threads)} jobs on {node.cpus:g} CPUs"
    if any(serving(job) for job in node.jobs):
        return ModeChoice(Mode.WEIGHT, "some containers serve: none may wait its turn")
    if known > node.cpus and max(threads, default=1) > 1 and len(threads) > 1:
        return ModeChoice(
            Mode.PRIORITY, f"{crowded}: jobs of several threads that compete lose time"
        )
    return ModeChoice(Mode.WEIGHT, f"{crowded}: nothing is lost by competing")


def busy_threads(job: ContainerHistory) -> int:
    """Return how many threads a job may keep busy: all it has, 1 where that is unknown."""
    return max(1, job.threads or 1)


def realise(
    chosen: ModeChoice,
    node: HostState,
    cpuset: str | None = None,
    silent: Sequence[ContainerHistory] = (),
    queue: Queue | None = None,
    now: int = 0,
) -> Realisation:
    """Return the settings of each job that was last granted a share, at a time (microseconds) at
    which its node's jobs stand in `queue`. `silent` containers have reported nothing yet.

    `quota`: a hard cap of share * cpus cores, to 0.001; a share of 1 takes it off. Isolates, and
    leaves CPU idle where a job does not use its share.
    `weight`: weights in proportion to the shares, 1024 for an average share and for a share of 1.
    Work-conserving: what one job leaves the others take.
    `priority`: weights a hundred times apart, first who is granted all that its threads can use,
    then in order of shares, so that as many as there are CPUs for run almost alone. Those of a
    higher rank stand behind. Work-conserving.
    `rotate`: as many trainings as there are CPUs for run at a time, the others are paused; turns in
    proportion to shares. Serving containers are never paused.
    `cores`: disjoint sets out of the CPUs `cpuset`, in proportion to shares, none smaller than a
    job's threads; where that cannot be, all get all.

    A free job has no quota, the default weight or an average turn; in a line it takes turns with
    the first. A silent container that
    restarted, or that still has the weight of a waiting job, gets back what containers begin with.
    """
    allocations = {job.id: node.previous[job.id] for job in node.jobs
              if job.id in node.previous and node.previous[job.id].share is not None}  # fmt: skip
    acts = node.cpus > 0 and bool(allocations)
    back = {job.id: _BEGINNING[chosen.mode] for job in silent
            if job.managed or (acts and _waits(job, chosen.mode))}  # fmt: skip
    back = {key: settings for key, settings in back.items() if settings}
    notes = dict.fromkeys(back, "what containers begin with")
    if not acts:
        return Realisation(chosen.mode, chosen.why, settings=back, notes=notes)
    jobs = [job for job in node.jobs if job.id in allocations]
    case = _Case(chosen, jobs, allocations, node.cpus, cpuset, queue or Queue(), now)
    found = _WAYS[chosen.mode](case)
    return replace(found, settings={**back, **found.settings}, notes={**notes, **found.notes})


_BEGINNING: Mapping[Mode, Settings] = {
    Mode.QUOTA: {"cpus": None},
    Mode.WEIGHT: {"cpu_weight": DEFAULT_CPU_WEIGHT},
    Mode.PRIORITY: {"cpu_weight": DEFAULT_CPU_WEIGHT},
    Mode.ROTATE: {},
    Mode.CORES: {"cpuset": None},
}
"""What a container begins with, of that which a mode sets."""


def _waits(job: ContainerHistory, mode: Mode) -> bool:
    """Tell whether a container has the weight of a job that waits: an earlier run left it so."""
    return "cpu_weight" in _BEGINNING[mode] and job.weight is not None and job.weight <= LEVELS[1]


def _hurried(case: _Case) -> tuple[dict[str, float], Queue, dict[str, str]]:
    """Return the jobs' shares, where whoever had less than half an equal share for too long has
    as much as the one that has most; the line after that, and notes."""
    jobs = [job for job in case.jobs if not serving(job)]
    shares = {job.id: case.share(job) for job in case.jobs}
    low = [job for job in jobs if shares[job.id] < 1 / (2 * len(case.jobs)) - 1e-12]
    groups = len(low) + (len(low) < len(jobs))
    urgent = set(case.queue.urgent((job.run_id for job in low), groups, case.now))
    notes = {job.id: _TURN for job in low if job.run_id in urgent}
    shares |= {key: max(shares.values()) for key in notes}
    waiting = [job.run_id for job in low if job.run_id not in urgent]
    first = [job.run_id for job in jobs if job.run_id not in waiting]
    queue = case.queue.moved(first, waiting, urgent, (), groups, case.now)
    return shares, queue, notes


_TURN = "has waited long enough: its turn"


def _quotas(case: _Case) -> Realisation:
    shares, queue, notes = _hurried(case)
    settings: dict[str, Settings] = {}
    total = 0.0
    for job in case.jobs:
        share = 1.0 if case.is_unlimited(job) else shares[job.id]
        cores = round(max(LEAST_CPUS, share * case.cpus), 3)
        settings[job.id] = {"cpus": None if cores >= case.cpus else cores}
        total += min(cores, case.cpus)
    note = f"quotas sum to {total:.3g} of {case.cpus:g} CPUs; what a job leaves of its own is lost"
    return _made(case, note, settings=settings, notes=notes, queue=queue)


def _weights(case: _Case) -> Realisation:
    shares, queue, notes = _hurried(case)
    settings: dict[str, Settings] = {}
    for job in case.jobs:
        share = shares[job.id]
        even = case.is_unlimited(job) or share >= 1
        weight = DEFAULT_CPU_WEIGHT * (1.0 if even else share * len(case.jobs))
        bounded = min(MOST_WEIGHT, max(LEAST_WEIGHT, weight))
        settings[job.id] = {"cpu_weight": float(round(bounded))}
    note = "work-conserving: what a job leaves the others take"
    return _made(case, note, settings=settings, notes=notes, queue=queue)


def _made(case: _Case, note: str, **parts: Any) -> Realisation:
    return Realisation(case.chosen.mode, case.chosen.why, note, **parts)


Standing = tuple[int, bool, float]


def _standing(case: _Case, job: ContainerHistory) -> Standing:
    """Return where a job stands by what it was granted, before others where it is less: by rank;
    then who is granted all that its threads can use, so that a narrow job is not behind a wide one;
    then by share."""
    share = round(case.share(job), 9)
    full = share * case.cpus >= min(busy_threads(job), case.cpus) * (1 - 1e-6)
    return case.allocations[job.id].rank, not full, 0.0 if full else -share


def _standings(case: _Case) -> dict[str, Standing]:
    """Return where each job that does not serve stands; free ones are the first one's equals."""
    found = {job.id: _standing(case, job) for job in case.jobs if not serving(job)}
    free = {job.id for job in case.jobs if case.is_unlimited(job)}
    best = min((standing for key, standing in found.items() if key not in free),
               default=None)  # fmt: skip
    head = (0, False, 0.0) if best is None or best[0] > 0 else best
    return {key: head if key in free else standing for key, standing in found.items()}


def _in_order(case: _Case, standings: Mapping[str, Standing]) -> list[ContainerHistory]:
    """Return the jobs that stand somewhere, in order; equals by arrival."""
    return sorted(
        (job for job in case.jobs if job.id in standings),
        key=lambda job: (standings[job.id], job.arrived, job.name, job.id),
    )


def _packed(jobs: Sequence[ContainerHistory], cpus: float) -> list[list[ContainerHistory]]:
    """Return the jobs in groups whose threads fit the CPUs: each in the first group that has room
    for it, in order; one that fits nowhere is a group of its own."""
    groups: list[list[ContainerHistory]] = []
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


def _priorities(case: _Case) -> Realisation:
    queue, now, standings = case.queue, case.now, _standings(case)
    jobs = _in_order(case, standings)
    many = len(_packed(jobs, case.cpus))
    urgent = queue.urgent((job.run_id for job in jobs), many, now)
    place = {run_id: number for number, run_id in enumerate(urgent)}
    jobs.sort(
        key=lambda job: (
            place.get(job.run_id, len(place)), standings[job.id], queue.turn(job.run_id, now),
            0.0 if job.run_id in queue.positions else job.attained,
        )
    )  # fmt: skip
    groups = _packed(jobs, case.cpus)
    settings: dict[str, Settings] = {job.id: {"cpu_weight": LEVELS[0]} for job in case.jobs}
    notes: dict[str, str] = {}
    for number, group in enumerate(groups):
        for job in group:
            settings[job.id] = {"cpu_weight": LEVELS[min(number, len(LEVELS) - 1)]}
            notes[job.id] = f"{number + 1}. of {len(groups)} in line" if len(groups) > 1 else ""
    first, waiting = groups[0] if groups else [], [job for group in groups[1:] for job in group]
    notes |= {job.id: _TURN for job in first if job.run_id in place}
    wanted = {standings[job.id] for job in waiting}
    note = f"work-conserving; the first of {len(groups)} in line run almost alone"
    if waiting:
        note += f", equals in turn; nobody waits much longer than {patience_s(many):g} s"
    queue = queue.moved(
        first=[job.run_id for job in first],
        waiting=[job.run_id for job in waiting],
        urgent=[job.run_id for job in first if job.run_id in place],
        equals=[job.run_id for job in first if standings[job.id] in wanted],
        groups=many, now=now,
    )  # fmt: skip
    return _made(case, note, settings=settings, notes=notes, queue=queue)


def _turns(case: _Case) -> Realisation:
    trainings = _in_order(case, _standings(case))
    notes = {job.id: "serves: never paused" for job in case.jobs if serving(job)}
    groups = _packed(trainings, case.cpus)
    if len(groups) < 2:
        note = "nobody waits: the trainings fit the CPUs together"
        return _made(case, note, notes=notes)
    sums = [math.fsum(case.share(job) for job in group) for group in groups]
    quantum_s = case.chosen.quantum_s
    settings: dict[str, Settings] = {}
    for number, (group, share) in enumerate(zip(groups, sums, strict=True)):
        turn = quantum_s * len(groups) * share / math.fsum(sums)
        turn = round(max(_SHORTEST * quantum_s, turn), 3)
        for job in group:
            settings[job.id] = {"group": number, "turn_s": turn}
            notes[job.id] = f"{turn:g} s of every cycle"
    note = f"{len(groups)} groups take turns; the CPUs of whoever has the turn are its own"
    return _made(case, note, op=Op.ROTATE, settings=settings, notes=notes)


def _cores(case: _Case) -> Realisation:
    jobs, every = case.jobs, parse_cpus(case.cpuset or "")
    everywhere: dict[str, Settings] = {job.id: {"cpuset": None} for job in jobs}
    if not every:
        return _made(case, "nothing is set: the CPUs' numbers are unknown")
    unknown = [job for job in jobs if job.threads is None]
    need = sum(busy_threads(job) for job in jobs)
    if unknown or need > len(every):
        what = (f"the threads of {unknown[0].name} are unknown" if unknown
                else f"{need} threads on {len(every)} CPUs")  # fmt: skip
        note = f"nobody is pinned: {what}, and a set below a job's threads makes it collapse"
        return _made(case, note, settings=everywhere)
    if len(jobs) == 1:
        return _made(case, "one job has all CPUs", settings=everywhere)
    order = _in_order(case, {job.id: _standing(case, job) for job in jobs})
    counts = {job.id: busy_threads(job) for job in order}
    for _spare in range(len(every) - need):
        poorest = max(order, key=lambda job: case.share(job) / counts[job.id])
        counts[poorest.id] += 1
    settings: dict[str, Settings] = {}
    at = 0
    for job in order:
        settings[job.id] = {"cpuset": format_cpus(every[at : at + counts[job.id]])}
        at += counts[job.id]
    return _made(case, "each job has CPUs of its own", settings=settings)


_WAYS: Mapping[Mode, Callable[[_Case], Realisation]] = {
    Mode.QUOTA: _quotas, Mode.WEIGHT: _weights, Mode.PRIORITY: _priorities,
    Mode.ROTATE: _turns, Mode.CORES: _cores,
}  # fmt: skip
