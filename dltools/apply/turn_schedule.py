"""Who runs next, and for how long, where groups of containers take turns on the CPUs.

It is one of the queues of `turn_queues`. It knows no engine and no clock: every time is an
argument, in seconds. All rules are ours:

- The group that has waited longest is next. Equal waits: whose last turn is longer ago, then the
  plan's order.
- A group with a new container gets a turn at once, but never two such turns in a row: the turn
  after one belongs to the group that has waited longest, and is not cut short.
- Nobody waits much longer than `Bound.patience_s`: a group that has waited so long goes before new
  ones, and ends a turn that has lasted `Bound.turn_s`, whatever lengths the plans ask for.
- Nobody is paused in one stretch for longer than it bears (`Turn.longest_pause_s`): it runs for
  `BREATH_S` beside the one that has its turn, and keeps its place.
- A container that wants next to no CPU in its turn sleeps: it runs on while others have their
  turns, since it cannot wake while it is frozen. When it wakes, its turn is next. Who waits for a
  CPU that other programs use wants it, and does not sleep.
- Where the group whose turn it is leaves CPUs idle (a start on one thread, a download), the groups
  that are next run beside it, until it wants more CPUs itself; from then on they wait for the rest
  of its turn. That is not their turn: they keep their place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dltools.actions.turn_lengths import TURN_S
from dltools.observations.idleness import ASLEEP_CORES, ASLEEP_S, AWAKE_CORES, AWAKE_S

IDLE_S, IDLE_CPUS = 0.75, 0.75
"""A turn in which so many CPUs were idle for so many seconds has room for another group."""

BREATH_S, EARLY_S = 1.0, 1.0
"""For how long a container runs that bears no longer pause, and how early that begins: two looks,
and half a second for an engine that others keep busy (it took 0.54 s, measured)."""

GROWTH_CPUS = 0.5
"""A group that wants so many CPUs more than when it had room needs them for itself."""


_CYCLE_S = 100.0
"""Seconds from the begin of a waiting group's turn to its next."""

_LEAST_PART = 0.6
"""Part of an equal turn that a group has at least (ours)."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How long one of so many groups waits at most, and how long its turn is then."""

    groups: int

    @property
    def turn_s(self) -> float:
        """Length of the turn (s)."""
        return max(TURN_S, _LEAST_PART * _CYCLE_S / max(1, self.groups))

    @property
    def patience_s(self) -> float:
        """Longest wait for that turn (s)."""
        return max(_CYCLE_S - self.turn_s, (self.groups - 1) * self.turn_s)


@dataclass(frozen=True, slots=True)
class Turn:
    """A container's place in a rotation: its group, and the length of the group's turn (s); the
    name of its queue, "" for that of the CPUs; the longest pause that it bears (s); the period in
    which it runs for so long (s), 0 for that of all turns in the queue."""

    container_id: str
    name: str
    group: int
    seconds: float
    queue: str = ""
    longest_pause_s: float = math.inf
    period_s: float = 0.0

    @property
    def pause_s(self) -> float:
        """After how long its pause is ended (s): before it bears no more."""
        return self.longest_pause_s - min(EARLY_S, self.longest_pause_s / 2)


Place = Literal["has its turn", "sleeps", "waits"]
"""What a container does in its queue; one that waits may run beside the one that has its turn."""


@dataclass(frozen=True, slots=True)
class TurnWait:
    """A container that is paused until its turn: for how long it has been (s), how long it will be
    at the latest (s), and its group's place among so many groups; the first has its turn."""

    turn: Turn
    waited_s: float
    left_s: float
    place: int
    groups: int


@dataclass(frozen=True, slots=True)
class Use:
    """What a container has used, in CPU seconds since its start, and how many CPUs its threads have
    wanted since the look before; None where that is unknown."""

    cpu_s: float
    wanted: float | None = None


@dataclass(slots=True)
class _Room:
    """The room beside the group whose turn it is.

    `begin`: when the present stretch began (s), and how long the host's CPUs had been idle by then
    (CPU seconds), None before the first look. `wanted`: the CPUs that the group wanted when it had
    room. `beside`: ids of containers that run beside it. `is_closed`: it has needed the room
    itself.
    """

    begin: tuple[float, float] | None = None
    wanted: float = 0.0
    beside: frozenset[str] = frozenset()
    is_closed: bool = False

    def look(self, now: float, wanted: float | None, idle_s: float | None) -> bool:
        """Tell whether the group has left CPUs idle for long enough that the next one may run
        beside it. `wanted`: the CPUs that it wants; None, as `idle_s`, where that is unknown."""
        if idle_s is None or wanted is None or self.is_closed:
            self.begin, self.beside = None, frozenset()
            return False
        if self.beside and wanted > self.wanted + GROWTH_CPUS:
            self.begin, self.beside, self.is_closed = None, frozenset(), True
            return False
        if self.begin is None or idle_s < self.begin[1]:
            self.begin = now, idle_s
            return False
        began, idle_before_s = self.begin
        if (span := now - began) < IDLE_S:
            return False
        self.begin = now, idle_s
        has_room = (idle_s - idle_before_s) / span >= IDLE_CPUS
        if has_room and not self.beside:
            self.wanted = wanted
        return has_room


@dataclass(slots=True)
class _Stretch:
    """A stretch of time over which a container either sleeps or does not: when it began (s), what
    the container had used by then (CPU seconds), when it was last looked at (s), and what it has
    wanted so far (CPU seconds), as far as that is known."""

    began: float
    used_s: float
    looked: float
    wanted_s: float = 0.0


@dataclass(slots=True)
class _Entry:
    """A container. `waits_since`: None while it has its turn or sleeps; `had_turn`: when its last
    turn began; `stretch`: None while it is frozen, or nothing is known of its use; `paused_since`:
    None while it runs; `breath_ends`: None unless it runs for a moment only."""

    turn: Turn
    place: int
    waits_since: float | None
    is_new: bool
    had_turn: float = -math.inf
    sleeps: bool = False
    has_woken: bool = False
    stretch: _Stretch | None = None
    paused_since: float | None = None
    breath_ends: float | None = None

    def note_use(self, now: float, use: Use | None, *, has_turn: bool) -> None:
        """Note whether it sleeps, or has woken, if it may run."""
        stretch = self.stretch
        if use is None or not (self.sleeps or has_turn):
            self.stretch = None
            return
        if stretch is None or use.cpu_s < stretch.used_s:
            self.stretch = _Stretch(now, use.cpu_s, now)
            return
        stretch.wanted_s += (use.wanted or 0.0) * (now - stretch.looked)
        stretch.looked = now
        span = now - stretch.began
        if span < (AWAKE_S if self.sleeps else ASLEEP_S):
            return
        cores = max(use.cpu_s - stretch.used_s, stretch.wanted_s) / span
        self.stretch = _Stretch(now, use.cpu_s, now)
        if self.sleeps and cores >= AWAKE_CORES:
            self.sleeps = False
            self.has_woken, self.waits_since = not has_turn, None if has_turn else now
        elif not self.sleeps and cores < ASLEEP_CORES:
            self.sleeps, self.waits_since = True, None


class _Groups:
    """The containers that take turns, by id, and the groups that they make."""

    def __init__(self) -> None:
        self.entries: dict[str, _Entry] = {}

    def in_order(self) -> list[_Entry]:
        """Return the containers in the plan's order."""
        return sorted(self.entries.values(), key=lambda entry: entry.place)

    def group(self, number: int | None) -> list[_Entry]:
        """Return the containers of one group."""
        return [entry for entry in self.entries.values() if entry.turn.group == number]

    def length(self, number: int) -> float:
        """Return the length of a group's turn (s)."""
        return max(entry.turn.seconds for entry in self.group(number))

    def awake(self, without: int | None = None) -> list[int]:
        """Return the groups of which a container is awake, in the plan's order, without one."""
        groups = {entry.turn.group for entry in self.entries.values() if not entry.sleeps}
        return sorted(groups - {without})

    def first_new(self) -> int | None:
        """Return the first group with a container that has had no turn."""
        return next((entry.turn.group for entry in self.in_order() if entry.is_new), None)

    def bound(self) -> Bound:
        """Return how long each waits at most."""
        return Bound(len({entry.turn.group for entry in self.entries.values()}))

    def by_wait(self, groups: Iterable[int], now: float) -> list[int]:
        """Return some groups, the one that has waited longest first."""
        return sorted(groups, key=lambda number: self._rank(number, now))

    def overdue(self, current: int | None, now: float) -> list[int]:
        """Return the groups beside the current one that have waited for their patience, the longest
        wait first."""
        patience_s = self.bound().patience_s
        waiting = self.awake(current)
        return self.by_wait(
            (number for number in waiting if now - self._since(number, now) >= patience_s), now
        )

    def _rank(self, number: int, now: float) -> tuple[float, float, int]:
        had_turn = max(entry.had_turn for entry in self.group(number))
        return self._since(number, now), had_turn, number

    def _since(self, number: int, now: float) -> float:
        """Return since when a group waits: since its first container does."""
        waits = [entry.waits_since for entry in self.group(number) if entry.waits_since is not None]
        return min(waits, default=now)


class TurnOrder:
    """The turns of some containers. Call `look` often: turns end only there.

    `ends`: when the present turn ends, unless somebody must go first.
    """

    def __init__(self) -> None:
        self._groups = _Groups()
        self._current: int | None = None
        self._began = self.ends = 0.0
        self._is_first_turn = False  # of a new container
        self._follows_first_turn = False
        self._room = _Room()

    @property
    def turns(self) -> list[Turn]:
        """The turns, in the plan's order."""
        return [entry.turn for entry in self._groups.in_order()]

    @property
    def is_settled(self) -> bool:
        """Whether no container waits for another."""
        return len({turn.group for turn in self.turns}) < 2

    def turn_of(self, container_id: str) -> Turn | None:
        """Return a container's turn, None if it takes none."""
        entry = self._groups.entries.get(container_id)
        return entry.turn if entry else None

    def has_turn(self, container_id: str) -> bool:
        """Tell whether it is the turn of a container's group."""
        return self._groups.entries[container_id].turn.group == self._current

    def place(self, container_id: str) -> Place:
        """Return what a container does."""
        if self.has_turn(container_id):
            return "has its turn"
        return "sleeps" if self._groups.entries[container_id].sleeps else "waits"

    def may_run(self, container_id: str) -> bool:
        """Tell whether a container runs now: it has its turn, runs beside it, sleeps, or has been
        paused for as long as it bears."""
        entry = self._groups.entries[container_id]
        is_beside = container_id in self._room.beside or entry.breath_ends is not None
        return self.has_turn(container_id) or is_beside or entry.sleeps

    def waits(self, now: float) -> Iterator[TurnWait]:
        """Yield the containers that are paused until their turn, the next first."""
        order = self._groups.by_wait(self._groups.awake(self._current), now)
        for place, group in enumerate(order, 2):
            for entry in self._groups.group(group):
                if entry.waits_since is not None and not self.may_run(entry.turn.container_id):
                    waited_s = now - entry.waits_since
                    longest_s = min(self._groups.bound().patience_s, entry.turn.longest_pause_s)
                    left_s = max(0.0, longest_s - waited_s)
                    yield TurnWait(entry.turn, waited_s, left_s, place, len(order) + 1)

    def replace(self, turns: Sequence[Turn], now: float) -> None:
        """Replace all turns by those of a plan, in its order.

        The group that has its turn keeps it, where a container of it stays, for no longer than its
        turn is in the new plan.
        """
        before = self._groups.entries
        had_turn = set(filter(self.has_turn, before))
        self._groups.entries = {}
        for place, turn in enumerate(sorted(turns, key=lambda planned: planned.group)):
            entry = before.get(turn.container_id) or _Entry(turn, place, now, is_new=bool(before))
            entry.turn, entry.place = turn, place
            self._groups.entries[turn.container_id] = entry
        stays = next((turn.group for turn in self.turns if turn.container_id in had_turn), None)
        if not self.turns:
            self._current = None
        elif stays is None:
            self._begin_next(now, is_begin=not before)
        else:
            self._current = stays
            self._note_waits(now)
            self.ends = min(self.ends, self._began + self._groups.length(stays))
            self._cut_for_new(stays, now)
        self._let_breathe(now)

    def remove(self, container_id: str) -> None:
        """Forget a container that has ended."""
        self._groups.entries.pop(container_id, None)

    def look(self, now: float, uses: Mapping[str, Use], idle_s: float | None = None) -> None:
        """End the present turn if it is over, and begin the next; else see whether it leaves room.

        `uses`: of each container whose counters can be read. `idle_s`: for how long the host's CPUs
        have been idle (CPU seconds since any time), None where that is unknown.
        """
        self._move_on(now, uses, idle_s)
        self._let_breathe(now)

    def _let_breathe(self, now: float) -> None:
        """Let those run for a moment that have been paused for as long as they bear."""
        for key, entry in self._groups.entries.items():
            if entry.breath_ends is not None and now >= entry.breath_ends:
                entry.breath_ends = None
            if self.may_run(key):
                entry.paused_since = None
            elif entry.paused_since is None:
                entry.paused_since = now
            elif now - entry.paused_since >= entry.turn.pause_s:
                entry.paused_since, entry.breath_ends = None, now + BREATH_S

    def _move_on(self, now: float, uses: Mapping[str, Use], idle_s: float | None) -> None:
        groups = self._groups
        for key, entry in groups.entries.items():
            entry.note_use(now, uses.get(key), has_turn=self.has_turn(key))
        if not groups.entries:
            self._current = None
            return
        if not groups.awake(self._current):  # whoever wakes first keeps the turn
            return
        is_over = now >= self.ends or self._current not in groups.awake()
        has_had_enough = now - self._began >= groups.bound().turn_s
        if is_over or (has_had_enough and groups.overdue(self._current, now)):
            self._begin_next(now)
        else:
            self._use_room(now, uses, idle_s)

    def _use_room(self, now: float, uses: Mapping[str, Use], idle_s: float | None) -> None:
        """Let the next group run beside the present one while that leaves CPUs idle."""
        present = [key for key in self._groups.entries if self.has_turn(key)]
        wants = [uses[key].wanted if key in uses else None for key in present]
        cpus = [want for want in wants if want is not None]
        wanted = math.fsum(cpus) if len(cpus) == len(wants) else None
        if not self._room.look(now, wanted, idle_s):
            return
        for number in self._groups.by_wait(self._groups.awake(self._current), now):
            ids = {entry.turn.container_id for entry in self._groups.group(number)}
            if not all(map(self.may_run, ids)):
                self._room.beside |= ids
                return

    def _begin_next(self, now: float, *, is_begin: bool = False) -> None:
        """Give the next group its turn."""
        groups = self._groups
        order = groups.awake(self._current) or groups.awake() or [turn.group for turn in self.turns]
        overdue = groups.overdue(self._current, now)
        woken = [group for group in order if any(entry.has_woken for entry in groups.group(group))]
        new = groups.first_new()
        if is_begin:
            self._begin(order[0], now)
        elif overdue:
            self._begin(overdue[0], now)
        elif new is not None and new in order and not self._is_first_turn:
            self._begin(new, now)
        else:
            self._begin(groups.by_wait(woken or order, now)[0], now)

    def _begin(self, group: int, now: float) -> None:
        self._follows_first_turn = self._is_first_turn
        self._is_first_turn = any(entry.is_new for entry in self._groups.group(group))
        self._current, self._began, self._room = group, now, _Room()
        self.ends = now + self._groups.length(group)
        self._note_waits(now)
        for entry in self._groups.group(group):
            entry.is_new = entry.has_woken = False
            entry.had_turn = now

    def _note_waits(self, now: float) -> None:
        """Count the waits of those that are frozen from now on."""
        for entry in self._groups.entries.values():
            if entry.sleeps or entry.turn.group == self._current:
                entry.waits_since = None
            elif entry.waits_since is None:
                entry.waits_since, entry.stretch = now, None

    def _cut_for_new(self, group: int, now: float) -> None:
        """Cut a turn short for that of a new container, where the rules allow it."""
        new = self._groups.first_new()
        is_too_soon = self._is_first_turn or self._follows_first_turn
        if new is None or new == group or is_too_soon or self._groups.overdue(self._current, now):
            return
        began = self._began
        self._begin(new, now)
        for entry in self._groups.group(group):
            if not entry.sleeps:
                entry.waits_since = began  # it has not had all of its turn
