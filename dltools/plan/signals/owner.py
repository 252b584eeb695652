"""What the owner of a container asked for; the realisation goes by it, and the advice to owners."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.notation.cpu_weights import V2_STEP
from dltools.notation.resources import parse_cpus


@dataclass(frozen=True, slots=True)
class Owner:
    """The limits that the owner of a container set at its start. `realisation.owner_bounds` finds
    them.

    `cpus` and `cpuset`: a quota in cores and a CPU list, None for no limit. `ratio`: the weight as
    a multiple of the default. `planned`: by setting, the last values that plans have set.
    `is_known`: whether a sample has shown the limits.
    """

    cpus: float | None = None
    ratio: float = 1.0
    cpuset: str | None = None
    planned: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    is_known: bool = False

    @property
    def most_cpus(self) -> float:
        """The most CPUs that the owner lets it use, infinity for no bound."""
        listed = len(parse_cpus(self.cpuset)) if self.cpuset else math.inf
        return min(listed, math.inf if self.cpus is None else self.cpus)


WAITING_WEIGHT = V2_STEP
"""A container of this weight or less may be idle because it waits in the queue: the second weight
of the mode `priority` is 10 in cgroup v1, and the least possible weight in cgroup v2."""


def waiting_weight(owner: Owner) -> float:
    """Return the weight up to which a container of this owner may be idle because it waits."""
    return WAITING_WEIGHT * max(1.0, owner.ratio)


UNKNOWN_OWNER = Owner()
"""Nothing is known of the owner."""
