"""Pausing and unpausing the containers of one engine that take turns.

`turn_queues` say whose turn it is. Only the engine pauses and unpauses: the kernel's freezer could
unpause a container while no engine answers, but the engine would go on saying "paused" and refuse
its own unpause from then on: "container not paused" (measured, Docker 20.10). So if no engine
answers, an error says which containers are paused, and how to unpause them.

A note is on disk before its container is paused. If dl-apply is killed, the watchdog, the next run
or --undo finds the notes and unpauses the containers (`undo`).

Whoever pauses, unpauses, signals or changes a container that takes turns has it for himself: it
takes none from then on, and what is not our own pause stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from dltools.apply.original_settings import timestamp
from dltools.apply.turn_queues import TurnQueues
from dltools.apply.turn_schedule import Place, Turn, TurnWait, Use
from dltools.engine import host
from dltools.engine.cgroup_files import Directory
from dltools.engine.cpu_demand import DemandWatch, threads_wait
from dltools.engine.freezer import thaw_if_stuck
from dltools.engine.interface import Engine, Event, GoneError, LocatedContainer, RefusedError
from dltools.engine.limits.cpu_limits import Locator
from dltools.engine.parts import Pauses, needed
from dltools.engine.patience import comes_true
from dltools.engine.pauses import is_paused, unpause
from dltools.engine.runs import ApplyRun
from dltools.engine.turn_notes import TurnNote, TurnNotes, how_to_unpause
from dltools.errors import DltoolsError, UnavailableError
from dltools.text import listed
from dltools.threads import if_late

CHECK_S = 0.25
"""How often the rotation looks at its containers: who has ended, who sleeps (ours)."""

_WAITS_S = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Waits between attempts: an engine that is stopping refuses to unpause for a while."""


PAUSED, RESUMED = "somebody has paused it", "somebody has unpaused it"

_PAUSES_WITHIN_S = 3.0
"""How long a pause may take (ours): it takes milliseconds."""

_ON_ITS_WAY_S, _LOOK_S = 1.0, 0.05
"""How long an engine may take to begin with a request, and how often it is looked whether it has,
where a signal has ended the wait for the answer (ours)."""


class Rotation:
    """The turns of one engine's containers. While it is empty, no container is paused."""

    def __init__(
        self,
        engine: Engine,
        directory: Path,
        run: ApplyRun | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty. Notes in `directory` name the containers that take turns, and `run`, the run
        of dl-apply that pauses them."""
        self.run = run or ApplyRun()
        self.on_hand: Callable[[Turn, str], None] | None = None
        """Called with a container that leaves the turns for somebody's sake, and what that one
        did."""
        self.attended: Collection[str] = ()
        """Ids of containers at which somebody is at work: they run, whosever turn it is."""
        self.touched: set[str] = set()
        """Ids of containers to which somebody did something that is not heeded yet: they are not
        paused until it is. Another thread adds to it."""
        self._clock = clock
        self._engine = engine
        self._counters = _Counters(engine)
        self._pauser = _Pauser(engine, TurnNotes(directory))
        self._queues = TurnQueues()
        self._due = 0.0

    @property
    def has_turns(self) -> bool:
        """Whether containers take turns."""
        return bool(self._queues.turns)

    def turn_of(self, container_id: str) -> Turn | None:
        """Return a container's turn, None if it takes none."""
        return self._queues.turn_of(container_id)

    def waits(self) -> Iterator[TurnWait]:
        """Yield the containers that are paused until their turn."""
        return self._queues.waits(self._clock())

    def paused_names(self) -> list[str]:
        """Return the names of the containers that were paused when last seen."""
        return self._pauser.paused_names(self._queues.turns)

    def set_turns(self, turns: Sequence[Turn]) -> None:
        """Replace all turns by those of a plan."""
        self._pauser.leave(self._queues.turns, {turn.container_id for turn in turns})
        self._unpause_leaving()
        for turn in turns:
            self._pauser.note(turn, self.run)
        self._queues.replace(turns, self._clock())
        if turns:
            self._pauser.refresh()
            self._drop_taken()
            self._let_run()

    def drop(self, container_id: str, why: str) -> None:
        """Let a container take no more turns for somebody's sake, unless it takes none. If it is
        paused, and not by somebody else, it goes on."""
        turn = self.turn_of(container_id)
        if turn is None:
            return
        self._queues.remove(turn)
        self._pauser.leave([turn])
        try:
            self._unpause_leaving()
        finally:
            if self.on_hand is not None:
                self.on_hand(turn, why)

    def note_event(self, event: Event) -> None:
        """Take note of a pause or the end of one: whether it is our own."""
        if event.action in ("pause", "unpause") and not self._engine.requests.is_own(event):
            self._pauser.give_up(event.container_id)
            self.drop(event.container_id, PAUSED if event.action == "pause" else RESUMED)

    def look(self) -> None:
        """Look at once, and not when it is due, as somebody has come or gone."""
        self._due = 0.0

    def _drop_taken(self) -> None:
        """Drop the containers that somebody else has paused or unpaused since the last look."""
        for turn in self._queues.turns:
            if why := self._pauser.taken(turn):
                self.drop(turn.container_id, why)

    def seconds_until_due(self) -> float | None:
        """Return the seconds until `advance` has something to do, None if it never has."""
        if not self.has_turns:
            return CHECK_S if self._pauser.has_leaving else None
        return max(0.0, self._due - self._clock())

    def advance(self) -> None:
        """Do what is due: forget containers that have ended, end a turn and begin the next."""
        self._unpause_leaving()
        now = self._clock()
        if not self.has_turns or now < self._due:
            return
        alive = self._pauser.refresh()
        for turn in self._queues.turns:
            if turn.container_id not in alive:
                self._queues.remove(turn)
                self._pauser.forget(turn)
        self._drop_taken()
        self._pauser.leave(self._queues.drop_settled())
        if not self._queues.turns:
            self.end()  # no container waits for a turn
            return
        self._unpause_leaving()
        uses = self._counters.read(self._queues.on_cpus())
        self._queues.look(now, uses, self._counters.idle_s)
        self._let_run()

    def end(self) -> None:
        """Unpause all containers and end their turns.

        Raises `UnavailableError` with the names of those that stay paused; the next run or --undo
        unpauses them.
        """
        self._pauser.leave(self._queues.turns)
        self._queues.replace((), self._clock())
        self._pauser.unpause_all()

    def _unpause_leaving(self) -> None:
        """Unpause containers that take no more turns; those that the engine refuses to unpause are
        tried again later."""
        if isinstance(error := self._pauser.unpause_leaving(), UnavailableError):
            raise error

    def _let_run(self) -> None:
        """Pause first, then unpause, so that nobody competes with whose turn it is; where turns are
        shares of the time unpause first, so that there is work meanwhile."""
        runs = {
            turn: self._queues.may_run(turn) or turn.container_id in self.attended
            for turn in self._queues.turns
        }
        for turn in (turn for turn, may_run in runs.items() if may_run and turn.period_s):
            self._pauser.unpause(turn)
        for turn in (turn for turn, may_run in runs.items() if not may_run):
            is_touched = turn.container_id in self.touched
            if not is_touched and not self._pauser.pause(turn):
                self.drop(turn.container_id, PAUSED)
        for turn in (turn for turn, may_run in runs.items() if may_run):
            self._pauser.unpause(turn)
        now = self._clock()
        self._due = min(now + CHECK_S, self._queues.next_end(now))


class _Counters:
    """What containers use whose cgroups are visible here, and what the host leaves idle; of others
    nothing is known."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._locator = Locator(engine)
        self._located: dict[str, LocatedContainer] = {}
        self._demands: dict[str, DemandWatch] = {}

    @property
    def idle_s(self) -> float | None:
        """For how long the host's CPUs have been idle (CPU seconds); None where the containers may
        not use all of them, or are not all seen."""
        everywhere = [
            located.usable_cpus >= self._engine.cpus and located.cgroup is not None
            for located in self._located.values()
        ]
        return host.idle_seconds() if everywhere and all(everywhere) else None

    def read(self, places: Mapping[str, Place]) -> dict[str, Use]:
        """Return what each of these containers has used, by id. Return what it wants, too, if it
        has its turn, or sleeps where threads wait for CPUs: there it may want more than it gets.
        """
        crowded = threads_wait(self._engine.cpus)
        uses = {}
        for id_, place in places.items():
            used = self._read(id_)
            if used is None:
                continue
            uses[id_] = Use(used)
            group = self._located[id_].cgroup if id_ in self._located else None
            if group is None or place == "waits" or (place == "sleeps" and not crowded):
                self._demands.pop(id_, None)
            elif id_ in self._demands:
                uses[id_] = Use(used, self._demands[id_].look(group, used))
            else:  # the first look says what it has wanted since its start
                self._demands[id_] = DemandWatch()
                self._demands[id_].look(group, used)
        for id_ in self._located.keys() - places.keys():
            del self._located[id_]
            self._demands.pop(id_, None)
        return uses

    def _read(self, id_: str) -> float | None:
        if id_ not in self._located:
            try:
                self._located[id_] = self._locator.locate_by_id(id_)
            except (GoneError, RefusedError):
                return None
        located = self._located[id_]
        used = located.cgroup.cpu().seconds if located.cgroup else None
        if used is None and located.cgroup is not None:
            del self._located[id_]  # it has restarted: look for its new cgroup
        return used


class _Rescue:
    """Thaws containers of one engine whose pause does not end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._locator = Locator(engine)
        self._freezers: dict[str, Directory | None] = {}

    def forget(self, id_: str) -> None:
        """Forget a container, which may get another freezer."""
        self._freezers.pop(id_, None)

    def thawing(self, id_: str) -> AbstractContextManager[None]:
        """Thaw a container if the block takes too long. A command that begins to run in it may be
        frozen half-way; then neither that one nor the engine goes on."""
        if id_ not in self._freezers:
            self._freezers[id_] = self._locator.locate_by_id(id_).controller("freezer")
        freezer = self._freezers[id_]
        if freezer is None:
            return nullcontext()
        return if_late(_PAUSES_WITHIN_S, thaw_if_stuck, self._engine, id_, freezer)


class _Pauser:
    """Pauses and unpauses containers of one engine. Those that leave the rotation are unpaused for
    good, unless somebody else has paused them, and their notes removed."""

    def __init__(self, engine: Engine, notes: TurnNotes) -> None:
        self._engine = engine
        self._notes = notes
        self._noted: dict[str, tuple[Turn, TurnNote]] = {}
        self._paused: set[str] = set()  # when last seen
        self._rescue = _Rescue(engine)
        self._held: set[str] = set()  # those that this run has paused, or may have
        self._on_their_way: set[str] = set()  # whose pause was asked for, and not answered
        self._leaving: list[Turn] = []

    @property
    def has_leaving(self) -> bool:
        """Whether containers that take no more turns are still to be unpaused."""
        return bool(self._leaving)

    def refresh(self) -> set[str]:
        """See which containers are paused, and return the ids of all that run or are paused."""
        states = {container.id: container.state for container in self._engine.containers()}
        self._paused = {key for key, state in states.items() if state == "paused"}
        return set(states)

    def taken(self, turn: Turn) -> str:
        """Return what somebody else has done to a container, by its state when last seen, "" for
        nothing."""
        is_paused, is_held = turn.container_id in self._paused, turn.container_id in self._held
        if is_paused == is_held or turn.container_id in self._on_their_way:
            return ""
        self._held.discard(turn.container_id)
        return PAUSED if is_paused else RESUMED

    def give_up(self, id_: str) -> None:
        """Take a container's pause for somebody else's."""
        self._held.discard(id_)

    def paused_names(self, turns: Iterable[Turn]) -> list[str]:
        """Return the names of these and of leaving containers that were paused when last seen."""
        return [t.name for t in (*turns, *self._leaving) if t.container_id in self._paused]

    def note(self, turn: Turn, run: ApplyRun) -> None:
        """Write down that a container takes turns, unless that is on disk. Raises `OutputError`."""
        noted, note = self._noted.get(turn.container_id, (None, None))
        if noted == turn:
            return
        note = TurnNote(
            engine=self._engine.id,
            host=self._engine.host,
            container_id=turn.container_id,
            container_name=turn.name,
            group=turn.group,
            seconds=turn.seconds,
            since=note.since if note else timestamp(),
            run=run,
            queue=turn.queue,
            paused_at=note.paused_at if note else None,
        )
        self._write(turn, note)

    def _write(self, turn: Turn, note: TurnNote) -> None:
        self._notes.write(note)
        self._noted[turn.container_id] = turn, note

    def _note_pause(self, turn: Turn, at: float | None) -> None:
        """Write down when a container is about to be paused, None when it goes on."""
        noted, note = self._noted[turn.container_id]
        self._write(noted, replace(note, paused_at=at))

    def pause(self, turn: Turn) -> bool:
        """Pause a container unless it is paused or has ended. Tell whether nobody else has."""
        id_ = turn.container_id
        if id_ in self._paused:
            return True
        self._note_pause(turn, time.time())
        self._paused.add(id_)  # even if the engine goes away before it answers
        self._held.add(id_)
        repeats = self._engine.requests.repeats
        try:
            with self._rescue.thawing(id_):
                needed(self._engine, Pauses).pause(id_)
        except (GoneError, RefusedError):  # it has ended, or is paused already
            if self._engine.requests.repeats > repeats and is_paused(self._engine, id_):
                return True  # by the request that the engine has not answered
            self._paused.discard(id_)
            self._held.discard(id_)
            self._note_pause(turn, None)
            return not is_paused(self._engine, id_)
        except (KeyboardInterrupt, SystemExit):
            self._on_their_way.add(id_)
            raise
        return True

    def unpause(self, turn: Turn) -> None:
        """Unpause a container that this run has paused. If the engine refuses, the next look tries
        again."""
        if turn.container_id in self._held:
            try:
                self._unpause(turn)
            except RefusedError:
                return
            self._note_pause(turn, None)

    def forget(self, turn: Turn) -> None:
        """Remove the note of a container that has ended or takes no more turns."""
        self._held.discard(turn.container_id)
        self._rescue.forget(turn.container_id)
        _, note = self._noted.pop(turn.container_id, (None, None))
        if note is not None:
            self._notes.remove(note)

    def leave(self, turns: Iterable[Turn], staying: Collection[str] = ()) -> None:
        """Let containers leave the rotation, except those with the ids `staying`."""
        leaving = (*self._leaving, *turns)
        self._leaving = [turn for turn in leaving if turn.container_id not in staying]

    def unpause_leaving(self) -> DltoolsError | None:
        """Unpause the leaving containers. Return the first error, None if there was none."""
        left, reason = [], None
        for turn in self._leaving:
            try:
                self._unpause(turn)
                self.forget(turn)
            except DltoolsError as error:
                left.append(turn)
                reason = reason or error
        self._leaving = left
        return reason

    def unpause_all(self) -> None:
        """Unpause the leaving containers, and wait for an engine that refuses.

        Raises `UnavailableError` with the names of those that stay paused.
        """
        reason = self.unpause_leaving()
        for wait in _WAITS_S:
            if not self._leaving or isinstance(reason, UnavailableError):
                break  # requests wait for an engine that does not answer
            time.sleep(wait)
            reason = self.unpause_leaving()
        if self._leaving:
            names = self.paused_names(()) or [turn.name for turn in self._leaving]
            raise UnavailableError(
                f"cannot unpause {listed(names)}: {reason}; {how_to_unpause(names)}"
            )

    def _unpause(self, turn: Turn) -> None:
        id_ = turn.container_id
        if id_ not in self._held:
            return
        comes_s = _ON_ITS_WAY_S if id_ in self._on_their_way else 0.0
        comes_true(lambda: unpause(self._engine, id_), comes_s, _LOOK_S)
        self._on_their_way.discard(id_)
        self._held.discard(id_)
        self._paused.discard(id_)
