"""The queues in which containers of one engine take turns: one for the CPUs, one for each set of
devices that jobs share. Queues know nothing of each other. `turns` pauses and unpauses what they
say.

In the queue for the CPUs turns follow the rules of `turn_schedule`, which go by what containers use
of the CPUs. In a queue for a device nobody looks at that: turns lie on a circle there. A group runs
for its turn in every period; its turn begins where the one before it ends. What the
period and the turns are makes the difference (ours):

- without a period it is the sum of the turns: one group runs at a time, each for some seconds;
- in a period of a second, say, a turn of 0.3 s is a share of the time: the group is paused for the
  rest. Where turns come to more than the period they overlap, so that the device has work while
  anybody has any; where they come to less, the time without one is spread evenly between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dltools.apply.turn_schedule import Place, Turn, TurnOrder, TurnWait, Use

_NONE_S = 1e-6
"""What is shorter is no time."""


class TurnCircle:
    """The turns of some containers on a circle of one period."""

    def __init__(self) -> None:
        self._arcs: list[list[Turn]] = []  # a group's turns, in the order in which they begin
        self._lengths: list[float] = []
        self._begins: list[float] = []  # seconds after the circle's begin
        self._period = self._origin = self._now = 0.0
        self._is_shared = False  # several may run at once

    @property
    def turns(self) -> list[Turn]:
        """The turns, in the plan's order."""
        return sorted((turn for arc in self._arcs for turn in arc), key=lambda turn: turn.group)

    @property
    def is_settled(self) -> bool:
        """Whether no container is ever paused."""
        return all(length >= self._period - _NONE_S for length in self._lengths)

    @property
    def ends(self) -> float:
        """When the next turn begins or ends after the last look, infinity where none will."""
        if self.is_settled:
            return math.inf
        edges = (
            (edge - (self._now - self._origin)) % self._period
            for begin, length in zip(self._begins, self._lengths, strict=True)
            if length < self._period
            for edge in (begin, begin + length)
        )
        return self._now + min(edge or self._period for edge in edges)

    def turn_of(self, container_id: str) -> Turn | None:
        """Return a container's turn, None if it takes none."""
        return next((turn for turn in self.turns if turn.container_id == container_id), None)

    def may_run(self, container_id: str) -> bool:
        """Tell whether a container had its turn at the last look."""
        number = self._number_of(container_id)
        if number is None:
            return False
        length = self._lengths[number]
        is_always = length >= self._period - _NONE_S
        return is_always or self._elapsed(number) < length - _NONE_S

    def waits(self, now: float) -> Iterator[TurnWait]:
        """Yield the containers that are paused until their turn, the next first; none where turns
        are parts of a short period."""
        if self._is_shared:
            return
        self._now = now
        since = ((self._elapsed(number), number) for number in range(len(self._arcs)))
        for place, (elapsed, number) in enumerate(sorted(since, reverse=True), 2):
            if elapsed >= self._lengths[number]:
                waited_s = elapsed - self._lengths[number]
                for turn in self._arcs[number]:
                    left_s = self._period - elapsed
                    yield TurnWait(turn, waited_s, left_s, place, len(self._arcs))

    def replace(self, turns: Sequence[Turn], now: float) -> None:
        """Replace all turns by those of a plan. Those that are known keep their order, and who has
        its turn goes on. New ones have the last turns from now, so that nobody waits for longer
        than a period, however many come."""
        self._now = now
        numbers = {turn.container_id: n for n, arc in enumerate(self._arcs) for turn in arc}
        running = [n for n in range(len(self._arcs)) if self._elapsed(n) < self._lengths[n]]
        latest = min(running, key=self._elapsed, default=None)
        elapsed = 0.0 if latest is None else self._elapsed(latest)
        last = len(self._arcs) if latest is None else latest - 0.5
        groups: dict[int, list[Turn]] = {}
        for turn in sorted(turns, key=lambda turn: turn.group):
            groups.setdefault(turn.group, []).append(turn)
        places = {
            group: min(numbers.get(turn.container_id, last) for turn in own)
            for group, own in groups.items()
        }
        order = sorted(groups, key=lambda group: (places[group], group))
        self._arcs = [groups[group] for group in order]
        self._lay_out()
        if latest is None:
            self._origin = self._origin if numbers else now
            return
        after = (number for number, group in enumerate(order) if places[group] >= latest)
        present = next(after, 0)
        if not order or places[order[present]] != latest:
            elapsed = 0.0  # whoever had its turn is gone, and the next begins
        if order:
            self._origin = now - min(elapsed, self._lengths[present]) - self._begins[present]

    def remove(self, container_id: str) -> None:
        """Forget a container that has ended. The place of a group that is empty stays empty."""
        for arc in self._arcs:
            arc[:] = [turn for turn in arc if turn.container_id != container_id]

    def look(self, now: float) -> None:
        """Look who has its turn now."""
        if any(not arc for arc in self._arcs):
            self.replace(self.turns, now)
        self._now = now

    def _lay_out(self) -> None:
        lengths = [max(turn.seconds for turn in arc) for arc in self._arcs]
        given = max((turn.period_s for arc in self._arcs for turn in arc), default=0.0)
        self._is_shared, self._period = given > 0, given or math.fsum(lengths)
        longest = [min(turn.pause_s for turn in arc) for arc in self._arcs]
        self._lengths = [
            min(self._period, max(length, self._period - pause))
            for length, pause in zip(lengths, longest, strict=True)
        ]
        spare = max(0.0, self._period - math.fsum(self._lengths)) / max(1, len(self._arcs))
        self._begins = [
            math.fsum(self._lengths[:number]) + number * spare for number in range(len(self._arcs))
        ]

    def _number_of(self, container_id: str) -> int | None:
        places = (
            n for n, arc in enumerate(self._arcs) for t in arc if t.container_id == container_id
        )
        return next(places, None)

    def _elapsed(self, number: int) -> float:
        """Return for how long (s) a group's turn has begun, at the last look."""
        if self._period <= 0:
            return 0.0
        since = (self._now - self._origin - self._begins[number]) % self._period
        return since if self._period - since > _NONE_S else 0.0


CPUS = ""
"""The name of the queue for the CPUs."""


class TurnQueues:
    """The turns of some containers, each in one queue. Call `look` often: turns end only there."""

    def __init__(self) -> None:
        self._cpus = TurnOrder()
        self._circles: dict[str, TurnCircle] = {}

    @property
    def _all(self) -> dict[str, TurnOrder | TurnCircle]:
        return {CPUS: self._cpus, **dict(sorted(self._circles.items()))}

    @property
    def turns(self) -> list[Turn]:
        """The turns, queue by queue, in the plan's order."""
        return [turn for queue in self._all.values() for turn in queue.turns]

    def next_end(self, now: float) -> float:
        """Return when the next of the present turns ends, infinity where none will."""
        ends = [queue.ends for queue in self._all.values()]
        return min((end for end in ends if end > now), default=math.inf)

    def turn_of(self, container_id: str) -> Turn | None:
        """Return a container's turn, None if it takes none."""
        turns = (queue.turn_of(container_id) for queue in self._all.values())
        return next((turn for turn in turns if turn is not None), None)

    def may_run(self, turn: Turn) -> bool:
        """Tell whether the container of a turn runs now."""
        return self._all[turn.queue].may_run(turn.container_id)

    def on_cpus(self) -> dict[str, Place]:
        """Return what each container in the queue for the CPUs does."""
        return {t.container_id: self._cpus.place(t.container_id) for t in self._cpus.turns}

    def waits(self, now: float) -> Iterator[TurnWait]:
        """Yield the containers that are paused until their turn."""
        for queue in self._all.values():
            yield from queue.waits(now)

    def replace(self, turns: Sequence[Turn], now: float) -> None:
        """Replace all turns by those of a plan, in its order. A container has one turn, the last
        that the plan gives it."""
        by_queue: dict[str, list[Turn]] = {name: [] for name in self._all}
        for turn in {turn.container_id: turn for turn in turns}.values():
            by_queue.setdefault(turn.queue, []).append(turn)
        self._cpus.replace(by_queue.pop(CPUS), now)
        for name, own in by_queue.items():
            self._circles.setdefault(name, TurnCircle()).replace(own, now)
        self._circles = {name: self._circles[name] for name, own in by_queue.items() if own}

    def remove(self, turn: Turn) -> None:
        """Forget a container that has ended."""
        self._all[turn.queue].remove(turn.container_id)

    def drop_settled(self) -> list[Turn]:
        """Drop the queues in which no container waits for another; return the turns in them."""
        settled = [turn for queue in self._all.values() if queue.is_settled for turn in queue.turns]
        if self._cpus.is_settled:
            self._cpus = TurnOrder()
        self._circles = {name: one for name, one in self._circles.items() if not one.is_settled}
        return settled

    def look(self, now: float, uses: Mapping[str, Use], idle_s: float | None) -> None:
        """End the turns that are over, and begin the next, in each queue. What containers use of
        the CPUs, and what of these is idle, counts in the queue for the CPUs alone."""
        self._cpus.look(now, uses, idle_s)
        for queue in self._circles.values():
            queue.look(now)
