"""The migrations that SpeCon has ordered: a job moves once, and an order that is not carried out is
given again ever later (ours)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dltools.notation.times import MICRO
from dltools.plan.policy.base import Cluster, HostState

_LONGEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class Moved:
    """A migration ordered earlier: from which host, when (microseconds), and how often in all."""

    source: str
    at: int
    orders: int = 1

    @classmethod
    def load(cls, saved: Any) -> Moved:
        """Return what was saved; a state of version 2 has a list."""
        return cls(**saved) if isinstance(saved, Mapping) else cls(*saved)


class OrderedMoves:
    """The orders so far, by job. `staying` are the jobs that no order is for now: they have moved,
    or may yet do so, or an order for them was not carried out of late."""

    def __init__(self, saved: Any, cluster: Cluster, cooldown_s: float) -> None:
        """Take on what was saved; `cooldown_s` as SpeCon's parameter."""
        self._moves = {name: Moved.load(one) for name, one in (saved or {}).items()}
        self._now = cluster.now
        self.staying = {
            name
            for name, move in self._moves.items()
            if not _is_on(cluster.hosts.get(move.source), name)
            or cluster.now - move.at < _wait_s(move, cooldown_s) * MICRO
        }

    def order(self, name: str, source: str) -> None:
        """Note that a job is ordered to leave its source."""
        before = self._moves.get(name)
        orders = before.orders + 1 if before and before.source == source else 1
        self._moves[name] = Moved(source, self._now, orders)
        self.staying.add(name)

    def is_leaving(self, name: str, source: str) -> bool:
        """Tell whether a job is ordered to leave its host."""
        return name in self.staying and self._moves[name].source == source

    def to_json(self) -> dict[str, Any]:
        """Return what the constructor takes."""
        return {name: asdict(move) for name, move in self._moves.items()}


def _is_on(host: HostState | None, name: str) -> bool:
    return host is not None and any(job.job_name == name for job in host.jobs)


def _wait_s(move: Moved, cooldown_s: float) -> float:
    """Return how long an order that is not carried out keeps the next one away (s)."""
    return min(_LONGEST_S, 2.0 * cooldown_s * float(1 << min(move.orders - 1, 20)))
