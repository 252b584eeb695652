"""The queues in which containers of one engine take turns: one for the CPUs, one for each set of
GPUs that jobs share. They know nothing of each other, and each keeps the order of `turn_order`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dltools.apply.turn_order import Turn, TurnOrder, Use

CPUS = ""
"""The name of the queue for the CPUs."""


class TurnQueues:
    """The turns of some containers, each in one queue. Call `look` often: turns end only there."""

    def __init__(self) -> None:
        """Begin without queues."""
        self._orders: dict[str, TurnOrder] = {}

    @property
    def turns(self) -> list[Turn]:
        """The turns, queue by queue, in the plan's order."""
        return [turn for _, order in sorted(self._orders.items()) for turn in order.turns]

    def next_end(self, now: float) -> float:
        """Return when the next of the present turns ends, infinity where none will."""
        ends = [order.ends for order in self._orders.values()]
        return min((end for end in ends if end > now), default=math.inf)

    def turn_of(self, container_id: str) -> Turn | None:
        """Return a container's turn, None if it takes none."""
        found = (order.turn_of(container_id) for order in self._orders.values())
        return next((turn for turn in found if turn is not None), None)

    def may_run(self, turn: Turn) -> bool:
        """Tell whether the container of a turn runs now."""
        return self._orders[turn.queue].may_run(turn.container_id)

    def on_cpus(self) -> dict[str, bool]:
        """Return the containers in the queue for the CPUs, and whether each has its turn."""
        order = self._orders.get(CPUS)
        if order is None:
            return {}
        return {turn.container_id: order.has_turn(turn.container_id) for turn in order.turns}

    def replace(self, turns: Sequence[Turn], now: float) -> None:
        """Replace all turns by those of a plan, in its order. A container has one turn, the last
        that the plan gives it."""
        by_queue: dict[str, list[Turn]] = {name: [] for name in self._orders}
        for turn in {turn.container_id: turn for turn in turns}.values():
            by_queue.setdefault(turn.queue, []).append(turn)
        for name, own in by_queue.items():
            self._orders.setdefault(name, TurnOrder()).replace(own, now)
        self._orders = {name: self._orders[name] for name, own in by_queue.items() if own}

    def remove(self, turn: Turn) -> None:
        """Forget a container that has ended."""
        self._orders[turn.queue].remove(turn.container_id)

    def drop_settled(self) -> list[Turn]:
        """Drop the queues in which no container waits for another; return the turns in them."""
        settled = {
            name: order.turns
            for name, order in self._orders.items()
            if len({turn.group for turn in order.turns}) < 2
        }
        self._orders = {name: order for name, order in self._orders.items() if name not in settled}
        return [turn for turns in settled.values() for turn in turns]

    def look(self, now: float, uses: Mapping[str, Use], idle_s: float | None) -> None:
        """End the turns that are over, and begin the next, in each queue. What containers use of
        the CPUs, and what of these is idle, counts in the queue for the CPUs alone."""
        for name, order in self._orders.items():
            if name == CPUS:
                order.look(now, uses, idle_s)
            else:
                order.look(now, {})
