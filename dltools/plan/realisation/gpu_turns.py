"""Jobs that share GPUs: what was measured of them, and the turns that they take there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dltools.notation.times import MICRO
from dltools.plan.policy.base import Allocation
from dltools.plan.realisation.settings import SHORTEST_TURN, Settings

PATIENCE_S = 120.0
"""For how long (s) sharing must lose before turns begin (ours)."""


@dataclass(frozen=True, slots=True)
class MeasuredSharing:
    """What was measured of the jobs that share some GPUs.

    `runs`: which they are. `total`: the parts of their best rates alone that they keep, added up;
    None where one of them is unknown. `since`: since when that has been under 1 (microseconds).
    `takes_turns`: it was for long enough.
    """

    runs: tuple[str, ...]
    total: float | None = None
    since: int | None = None
    takes_turns: bool = False

    def after(self, total: float | None, now: int) -> MeasuredSharing:
        """Return it after a look at a time (microseconds). Turns go on: what sharing would cost is
        not seen meanwhile."""
        if self.takes_turns:
            return self
        since = None
        if total is not None and total < 1:
            since = now if self.since is None else self.since
        is_long = since is not None and now - since >= round(PATIENCE_S * MICRO)
        return replace(self, total=total, since=since, takes_turns=is_long)


@dataclass(frozen=True, slots=True)
class GpuSharing:
    """What becomes of jobs that share GPUs. `turns`: by the name of a GPU queue, the ids of the
    jobs that take turns in it; `notes`: by job id, why jobs share or take turns."""

    turns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def turn_settings(
    sharing: GpuSharing, given: Mapping[str, Allocation], quantum_s: float
) -> dict[str, Settings]:
    """Return the turns of jobs, by id: each alone, in the order of the policy, for a time in
    proportion to its share of the queue's; the mean is `quantum_s`."""
    return {
        id_: {"group": number, "turn_s": round(part * quantum_s, 3), "queue": queue}
        for queue, ids in sharing.turns.items()
        for number, (id_, part) in enumerate(_parts({id_: given[id_] for id_ in ids}))
    }


def _parts(given: Mapping[str, Allocation]) -> list[tuple[str, float]]:
    """Return the ids of a queue's jobs in order, each with its turn as a part of the mean one. Of
    whom too little is known has the mean of the others."""
    known = [one.share for one in given.values() if one.share is not None and not one.unlimited]
    mean = math.fsum(known) / len(known) if known else 1.0
    shares = {
        id_: mean if one.share is None or one.unlimited else one.share for id_, one in given.items()
    }
    total = math.fsum(shares.values())
    order = sorted(shares, key=lambda id_: (given[id_].rank, -shares[id_]))
    return [(id_, max(SHORTEST_TURN, len(order) * shares[id_] / total)) for id_ in order]
