"""How a host shares its CPUs, as the kernel does.

CPUs go to the jobs that can use them in proportion to their weights, but no job gets more than its
quota, its CPU list or its threads allow; the others get what it cannot use (weighted max-min
fairness).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(slots=True)
class Limits:
    """What is set for a job.

    `cpus`: its quota in cores, None for none. `weight`: that of each of its `containers`. `listed`:
    how many CPUs its list holds, None for all. Where jobs take turns, `group` is the number of its
    group and `turn_s` the length of that group's turn; `queue` names the GPUs on which they do, ""
    for the CPUs.
    """

    cpus: float | None = None
    weight: float = 1024.0
    listed: int | None = None
    is_paused: bool = False
    group: int | None = None
    turn_s: float = 0.0
    queue: str = ""
    containers: int = 1

    @property
    def all_weights(self) -> float:
        """The weight of all its containers together."""
        return self.weight * self.containers


class Turn(NamedTuple):
    """One turn of a cycle: its share of the time, and the limits of all jobs in it."""

    share: float
    limits: list[Limits]


def allocate(wanted: Sequence[float], limits: Sequence[Limits], cpus: float) -> list[float]:
    """Return the cores that each job gets, of a host's CPUs.

    `wanted` are the cores that each job could use alone: its threads, or less where it waits for
    requests. A CPU list counts as a cap, too: jobs without one compete for all CPUs.
    """
    got = [0.0] * len(wanted)
    levels: list[tuple[float, int]] = []
    left = cpus
    for i, (most, limit) in enumerate(zip(wanted, limits, strict=True)):
        cap = min(most, cpus if limit.cpus is None else limit.cpus)
        if limit.listed is not None:
            cap = min(cap, float(limit.listed))
        if not limit.is_paused and cap > 0:
            levels.append((cap / limit.all_weights, i))
    total = sum(limits[i].all_weights for _, i in levels)
    for level, i in sorted(levels):
        weight = limits[i].all_weights
        got[i] = min(level * weight, left * weight / total)
        left -= got[i]
        total -= weight
    return got


def turns(limits: Sequence[Limits]) -> list[Turn]:
    """Return the turns of a cycle on the CPUs; without groups one, all the time.

    Jobs in no group compete with the group that has its turn, as with dl-apply.
    """
    lengths = {
        limit.group: limit.turn_s for limit in limits if limit.group is not None and not limit.queue
    }
    if not lengths:
        return [Turn(1.0, list(limits))]
    cycle = sum(lengths.values())
    return [
        Turn(seconds / cycle, [_in_turn(limit, group) for limit in limits])
        for group, seconds in sorted(lengths.items())
    ]


def _in_turn(limit: Limits, group: int) -> Limits:
    if limit.queue or limit.group in (None, group):
        return limit
    return replace(limit, is_paused=True)


def parts_of_gpu_turns(limits: Sequence[Limits]) -> list[float]:
    """Return the part of the time that the turns on GPUs leave each job: 1 for one without."""
    lengths: dict[str, dict[int, float]] = {}
    for limit in limits:
        if limit.queue and limit.group is not None:
            lengths.setdefault(limit.queue, {})[limit.group] = limit.turn_s
    return [
        lengths[limit.queue][limit.group] / sum(lengths[limit.queue].values())
        if limit.queue and limit.group is not None
        else 1.0
        for limit in limits
    ]


def cores_without_quota(
    at: int, wanted: Sequence[float], limits: Sequence[Limits], cpus: float
) -> float:
    """Return the cores that the job at an index would get without its own quota."""
    freed = list(limits)
    freed[at] = replace(limits[at], cpus=None)
    return allocate(wanted, freed, cpus)[at]
