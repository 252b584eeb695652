"""What the owner of a container asked for at its start. `realisation.owner_bounds` learns it from
samples and keeps what is set within it; it stands alone, as a container's history has it too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.notation.cpu_lists import parse_cpus


@dataclass(frozen=True, slots=True)
class Owner:
    """A quota in cores and a list of CPUs, None where the owner asked for none; `ratio`: the weight
    as a multiple of the default.

    `planned`: the last values that plans have set, by setting. `is_known`: a sample has told it.
    """

    cpus: float | None = None
    ratio: float = 1.0
    cpuset: str | None = None
    planned: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    is_known: bool = False

    @property
    def most_cpus(self) -> float:
        """The CPUs that it can use at most, infinity where the owner has set no bound."""
        listed = len(parse_cpus(self.cpuset)) if self.cpuset else math.inf
        return min(listed, math.inf if self.cpus is None else self.cpus)


UNKNOWN = Owner()
"""Nothing is known of the owner."""
