"""How a machine shares its CPUs, and what its jobs make of them.

The kernel's part: CPUs go to those who want them in proportion to weights, none above its quota,
its CPU list or its threads; what one cannot use the others get (weighted max-min fairness).

The jobs' part: threads of one job wait for each other at barriers, and spin while they do. A job of
k threads that has the part f of the CPUs that it could use makes f^(3 (1 - 1/k)) of its CPU time,
but not less than 0.19: one thread loses nothing, two at half the CPUs run at 0.18 of their speed.
Calibrated to two PyTorch trainings of two threads on two CPUs, 7.1 s of work each alone (measured,
Docker 20.10, see tests/sim/test_machine.py for the table and the errors): both done after 35 s in
free competition, after 14.5 and 21.9 s with weights 1024 : 300, 8.4 and 16.7 s with 1024 : 2.
Where jobs take turns, each change-over costs 0.16 s (the same two in turns of 2 s: 16.5 s).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

CHANGE_OVER_S = 0.16
_SPIN = 3.0
LEAST = 0.19
"""What a job of several threads makes of its CPU time at the least: what three competing trainings
showed in the mean (0.12 to 0.46 in four runs). More have not been measured, and are taken to lose
no more."""


@dataclass(slots=True)
class Limits:
    """What is set for a job: `cpus` (None: no quota), a weight, how many CPUs of its own (None: all
    of them), whether it is paused, and in a rotation its group and the length of that group's turn
    in seconds."""

    cpus: float | None = None
    weight: float = 1024.0
    own: int | None = None
    paused: bool = False
    group: int | None = None
    turn_s: float = 0.0


def exponent(threads: int, spin: float = 1.0) -> float:
    """Return the power of the part of its CPUs with which a job's speed falls."""
    return 1 + _SPIN * spin * (1 - 1 / max(1, threads))


def speed(
    cores: float, threads: int, cpus: float, spin: float = 1.0, beside: float | None = None
) -> float:
    """Return the useful CPU seconds per second of a job that has these cores of a node's CPUs.

    `spin` is how much of the measured loss its threads suffer: 1 where they spin at barriers, 0
    where they sleep (OMP_WAIT_POLICY=passive; measured: two trainings at once take 17.1 s, one
    after the other 19.3 s). `beside` are the cores that the others would leave it, where its own
    quota gives it fewer: a quota stops all threads of a job at once, so that none waits for another
    (measured: a training held to one of two CPUs, with nobody beside it, takes twice as long).
    """
    most = min(float(threads), cpus)
    if cores <= 0 or most <= 0:
        return 0.0
    part = min(1.0, cores / most)
    lost = min(1.0, max(part, (beside or 0.0) / most)) ** (exponent(threads, spin) - 1)
    if lost < LEAST:
        lost = LEAST
    return float(most * part * lost)


def allocate(wants: Sequence[float], limits: Sequence[Limits], cpus: float) -> list[float]:
    """Return the cores that each job gets, of a node's CPUs.

    `wants` are the cores that each could use alone: its threads, or less where it waits for
    requests. A CPU list counts as a cap, too: whoever has none competes for all CPUs.
    """
    got = [0.0] * len(wants)
    open_: list[tuple[float, int]] = []
    left = cpus
    for i, (want, limit) in enumerate(zip(wants, limits, strict=True)):
        cap = min(want, cpus if limit.cpus is None else limit.cpus)
        if limit.own is not None:
            cap = min(cap, float(limit.own))
        if not limit.paused and cap > 0:
            open_.append((cap / limit.weight, i))
    total = sum(limits[i].weight for _, i in open_)
    for level, i in sorted(open_):
        weight = limits[i].weight
        got[i] = min(level * weight, left * weight / total)
        left -= got[i]
        total -= weight
    return got


def useful(
    cores: float,
    limit: Limits,
    threads: int,
    cpus: float,
    spin: float = 1.0,
    beside: float | None = None,
) -> float:
    """Return the useful CPU seconds per second, with what change-overs cost."""
    lost = min(1.0, CHANGE_OVER_S / limit.turn_s) if limit.group is not None else 0.0
    return speed(cores, threads, cpus, spin, beside) * (1 - lost)


def turns(limits: Sequence[Limits]) -> list[tuple[float, list[Limits]]]:
    """Return the turns of a cycle: the part of the time that each takes, and the limits in it.

    Whoever is in no group competes with whoever has the turn, as with dl-apply. Without groups
    there is one turn, all the time.
    """
    lengths = {limit.group: limit.turn_s for limit in limits if limit.group is not None}
    if not lengths:
        return [(1.0, list(limits))]
    cycle = sum(lengths.values())
    return [
        (seconds / cycle, [limit if limit.group in (None, group) else replace(limit, paused=True)
                           for limit in limits])
        for group, seconds in sorted(lengths.items())
    ]  # fmt: skip


def beside(at: int, wants: Sequence[float], limits: Sequence[Limits], cpus: float) -> float:
    """Return the cores that a job would get without its own quota."""
    freed = list(limits)
    freed[at] = replace(limits[at], cpus=None)
    return allocate(wants, freed, cpus)[at]
