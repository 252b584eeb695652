"""Pausing and unpausing the containers of one engine that take turns.

`turn_order` says whose turn it is. Only the engine pauses and unpauses: the kernel's freezer could
unpause a container while no engine answers, but the engine would go on saying "paused" and refuse
its own unpause from then on: "container not paused" (measured, Docker 20.10). So if no engine
answers, an error says which containers are paused, and how to unpause them.

A note is on disk before its container is first paused. If dl-apply is killed, the watchdog, the
next run or --undo finds the notes and unpauses the containers (`recovery`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from dltools.apply.original_settings import timestamp
from dltools.apply.turn_order import Place, Turn, TurnQueues, Use
from dltools.engine import host
from dltools.engine.cgroup_counters import cpu_seconds
from dltools.engine.demand import DemandWatch, threads_wait
from dltools.engine.interface import Engine, GoneError, LocatedContainer, RefusedError
from dltools.engine.limits.cpu_limits import Locator
from dltools.engine.runs import ApplyRun
from dltools.engine.turn_notes import TurnNote, TurnNotes, how_to_unpause, listed
from dltools.errors import DltoolsError, UnavailableError

CHECK_S = 0.25
"""How often the rotation looks at its containers: who has ended, who sleeps (ours)."""

_WAITS_S = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Waits between attempts: an engine that is stopping refuses to unpause for a while."""


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
        self._clock = clock
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
            self._let_run()

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
        """Pause first, then unpause, so that nobody competes with whose turn it is."""
        turns = self._queues.turns
        for turn in turns:
            if not self._queues.may_run(turn):
                self._pauser.pause(turn)
        for turn in turns:
            if self._queues.may_run(turn):
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
        found = {}
        for id_, place in places.items():
            used = self._read(id_)
            if used is None:
                continue
            found[id_] = Use(used)
            group = self._located[id_].cgroup if id_ in self._located else None
            if group is None or place == "waits" or (place == "sleeps" and not crowded):
                self._demands.pop(id_, None)
            elif id_ in self._demands:
                found[id_] = Use(used, self._demands[id_].look(group, used))
            else:  # the first look says what it has wanted since its start
                self._demands[id_] = DemandWatch()
                self._demands[id_].look(group, used)
        for id_ in self._located.keys() - places.keys():
            del self._located[id_]
            self._demands.pop(id_, None)
        return found

    def _read(self, id_: str) -> float | None:
        if id_ not in self._located:
            try:
                self._located[id_] = self._locator.find(id_)
            except (GoneError, RefusedError):
                return None
        located = self._located[id_]
        used = cpu_seconds(located.cgroup) if located.cgroup else None
        if used is None and located.cgroup is not None:
            del self._located[id_]  # it has restarted: look for its new cgroup
        return used


class _Pauser:
    """Pauses and unpauses containers of one engine. Those that leave the rotation are unpaused for
    good, and their notes removed."""

    def __init__(self, engine: Engine, notes: TurnNotes) -> None:
        self._engine = engine
        self._notes = notes
        self._noted: dict[str, tuple[Turn, TurnNote]] = {}
        self._paused: set[str] = set()  # when last seen
        self._on_their_way: set[str] = set()  # whose pause was asked for, and not answered
        self._leaving: list[Turn] = []

    @property
    def has_leaving(self) -> bool:
        """Whether containers that take no more turns are still to be unpaused."""
        return bool(self._leaving)

    def refresh(self) -> set[str]:
        """See which containers are paused, and return the ids of all that run or are paused."""
        states = {found.id: found.state for found in self._engine.containers()}
        self._paused = {key for key, state in states.items() if state == "paused"}
        return set(states)

    def paused_names(self, turns: Iterable[Turn]) -> list[str]:
        """Return the names of these and of leaving containers that were paused when last seen."""
        return [t.name for t in (*turns, *self._leaving) if t.container_id in self._paused]

    def note(self, turn: Turn, run: ApplyRun) -> None:
        """Write down that a container takes turns, unless that is on disk. Raises `OutputError`."""
        known, note = self._noted.get(turn.container_id, (None, None))
        if known == turn:
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
        )
        self._notes.write(note)
        self._noted[turn.container_id] = turn, note

    def pause(self, turn: Turn) -> None:
        """Pause a container unless it is paused or has ended."""
        if turn.container_id in self._paused:
            return
        self._paused.add(turn.container_id)  # even if the engine goes away before it answers
        try:
            self._engine.pause(turn.container_id)
        except (GoneError, RefusedError):  # it has ended, or is paused already
            self._paused.discard(turn.container_id)
        except (KeyboardInterrupt, SystemExit):
            self._on_their_way.add(turn.container_id)
            raise

    def unpause(self, turn: Turn) -> None:
        """Unpause a container that is paused. If the engine refuses, the next look tries again."""
        if turn.container_id in self._paused:
            try:
                self._unpause(turn)
            except RefusedError:
                return

    def forget(self, turn: Turn) -> None:
        """Remove the note of a container that has ended or takes no more turns."""
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
        was_paused = unpause(self._engine, id_)
        if id_ in self._on_their_way:
            until = time.monotonic() + _ON_ITS_WAY_S
            while not was_paused and time.monotonic() < until:
                time.sleep(_LOOK_S)
                was_paused = unpause(self._engine, id_)
            self._on_their_way.discard(id_)
        if was_paused:
            self._paused.discard(id_)


def set_state(engine: Engine, container_id: str, state: str) -> None:
    """Pause a container ("paused") or unpause it ("running"), unless it is in that state.

    Raises `GoneError` or `RefusedError`.
    """
    try:
        (engine.pause if state == "paused" else engine.unpause)(container_id)
    except RefusedError:
        if engine.inspect(container_id).state != state:
            raise


def unpause(engine: Engine, container_id: str) -> bool:
    """Unpause a container that may run, or may have ended, and tell whether it was paused.

    Raises `RefusedError` if the engine leaves it paused.
    """
    try:
        engine.unpause(container_id)
    except GoneError:
        return False
    except RefusedError:  # it runs already, has ended, or the engine cannot just now
        try:
            if engine.inspect(container_id).state == "paused":
                raise
        except GoneError:
            pass
        return False
    return True
