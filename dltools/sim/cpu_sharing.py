"""How a host shares its CPUs, like the kernel, and how fast jobs run with their shares.

CPUs go to the jobs that can use them in proportion to their weights, but no job gets more than its
quota, its CPU list or its threads allow; the others get what it cannot use (weighted max-min
fairness).

`dltools.plan.forecast.contention_law` says what a job loses that has a part of the CPUs that it
could use. If a job has more threads than there are CPUs, its threads sleep at barriers (libgomp
spins much less then), and lose nothing. If jobs take turns, each change of turns costs 0.16 s.

Measured with Docker 20.10 and PyTorch trainings on two CPUs. Two trainings at once (7.1 s of work
each alone) end after 35 s in free competition, after 14.5 and 21.9 s with weights 1024 : 300, after
8.4 and 16.7 s with 1024 : 2, and after 16.5 s in turns of 2 s. Two, three, four and six at once in
free competition run at 0.25, 0.09, 0.08 and 0.04 of their speed in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dltools.actions.settings import Settings
from dltools.notation.limits import most_cpus, weight_of
from dltools.plan.forecast.contention_law import spin_exponent, useful_part
from dltools.plan.policy.shares import in_proportion

PAUSED = "paused"


def allocate(wanted: Sequence[float], limits: Sequence[Settings], cpus: float) -> list[float]:
    """Return the cores that each job gets on a host with this many CPUs.

    `wanted`: the cores that each job could use alone, which are its threads, or less if it waits
    for requests. `limits`: those of all containers of each job together, and its turn. A CPU list
    counts only as a cap: all jobs compete for all CPUs.
    """
    weights, caps = {}, {}
    for at, (most, limit) in enumerate(zip(wanted, limits, strict=True)):
        if limit.get("state") != PAUSED:
            weights[at] = weight_of(limit)
            caps[at] = min(most, cpus, most_cpus(limit))
    parts = in_proportion(weights, cpus, most=caps)
    return [parts.get(at, 0.0) for at in range(len(wanted))]


def cores_without_quota(
    at: int, wanted: Sequence[float], limits: Sequence[Settings], cpus: float
) -> float:
    """Return the cores that the job at an index would get without its own quota."""
    freed = list(limits)
    freed[at] = {**limits[at], "cpus": None}
    return allocate(wanted, freed, cpus)[at]


class SimulatedTurn(NamedTuple):
    """One turn of a cycle: its share of the time, and the limits of all jobs in it."""

    share: float
    limits: list[Settings]


def turns(limits: Sequence[Settings]) -> list[SimulatedTurn]:
    """Return the turns of a cycle on the CPUs: a single turn if there are no groups.

    Jobs in no group compete with the group that has its turn, as with dl-apply.
    """
    lengths = {limit["group"]: limit["turn_s"] for limit in limits if "group" in limit}
    if not lengths:
        return [SimulatedTurn(1.0, list(limits))]
    cycle = sum(lengths.values())
    return [
        SimulatedTurn(seconds / cycle, [_in_turn(limit, group) for limit in limits])
        for group, seconds in sorted(lengths.items())
    ]


def _in_turn(limit: Settings, group: int) -> Settings:
    if limit.get("group", group) == group:
        return limit
    return {**limit, "state": PAUSED}


CHANGE_OVER_S = 0.16


def change_over_loss(limits: Settings) -> float:
    """Return the part of its CPU time that a job loses to changes of turns."""
    return min(1.0, CHANGE_OVER_S / limits["turn_s"]) if "group" in limits else 0.0


def speed(
    cores: float, threads: int, cpus: float, spin: float = 1.0, without_quota: float | None = None
) -> float:
    """Return the useful CPU seconds per second of a job that has these cores of a host's CPUs.

    `spin`: the part of the measured loss that its threads suffer, 1 if they spin at barriers, 0 if
    they sleep (OMP_WAIT_POLICY=passive; measured: two trainings at once take 17.1 s, one after the
    other 19.3 s). `without_quota`: the cores that it would have without its own quota. A quota
    stops all threads of a job at once, so that none waits for another (measured: a training that a
    quota limits to one of two CPUs, alone on the host, takes twice as long).
    """
    most = min(float(threads), cpus)
    if cores <= 0 or most <= 0:
        return 0.0
    share = min(1.0, cores / most)
    if threads > cpus or spin <= 0:
        return most * share
    unhindered = min(1.0, max(share, (without_quota or 0.0) / most))
    kept = useful_part(unhindered, spin_exponent(threads, spin), spin)
    return float(most * share * kept)
