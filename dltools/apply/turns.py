"""Groups of containers that take turns: all but one group are paused, and change over in time.

Before a container is first paused, a file says so. Whatever ends the run, kill -9 included, the
next one that writes, or an undo, finds the files and leaves nobody paused.

Only the engine pauses and unpauses. The kernel's freezer could let a container run while no engine
answers, but the engine would go on saying "paused", and refuse its own unpause from then on:
"container not paused" (measured, Docker 20.10). So without an engine it is said who is paused, and
how to free them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dltools.apply.original import stamp
from dltools.engine import pauses
from dltools.engine.containers import Engine, GoneError, RefusedError
from dltools.engine.pauses import Note, Run, still_paused
from dltools.errors import DltoolsError, OutputError, UnavailableError
from dltools.files import atomic_file

LOOK_S = 0.25
"""How often it is looked whether the group that has the turn has ended (ours)."""

_WAITS_S = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Waits between tries where the engine refuses to let a container run: it does so while it stops.
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """A container's place in a rotation: its group, and the length of the group's turn (s)."""

    container_id: str
    name: str
    group: int
    seconds: float


class Rotation:
    """The schedule of one engine's containers; nobody is paused while it is empty."""

    def __init__(
        self,
        engine: Engine,
        directory: Path,
        run: Run | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin empty; the directory is made when the first container is to be paused. `run` is
        who pauses, for the files to say."""
        self.run = run or Run()
        self._engine = engine
        self._directory = directory
        self._clock = clock
        self._turns: list[Turn] = []
        self._current: int | None = None
        self._until = 0.0
        self._look_at = 0.0
        self._paused: set[str] = set()  # as last seen
        self._refused: set[str] = set()  # to run, and the engine would not
        self._leaving: list[Turn] = []  # to run for good
        self._noted: dict[str, tuple[Turn, str]] = {}  # with the time of its first turn

    @property
    def active(self) -> bool:
        """Whether anybody takes turns."""
        return bool(self._turns)

    def holds(self, container_id: str, turn: Turn | None = None) -> bool:
        """Tell whether a container takes turns, or has just this place in the rotation."""
        return any(t.container_id == container_id and turn in (None, t) for t in self._turns)

    def follow(self, turns: Sequence[Turn]) -> None:
        """Go over to a schedule. Who has the turn keeps it where it is still in a group."""
        staying = {turn.container_id for turn in turns}
        running = {t.container_id for t in self._turns if t.group == self._current}
        self._leaving += [turn for turn in self._turns if turn.container_id not in staying]
        self._leaving = [turn for turn in self._leaving if turn.container_id not in staying]
        self._turns = sorted(turns, key=lambda turn: (turn.group, turn.name))
        self._let_leave()
        for turn in self._turns:
            self._note(turn)
        if not self._turns:
            self._current = None
            return
        self._see()
        kept = next((t.group for t in self._turns if t.container_id in running), None)
        self._start(self._turns[0].group if kept is None else kept, keep=kept is not None)

    def wait_s(self) -> float | None:
        """Return the seconds until there is something to do, None where there is nothing."""
        if not self._turns:
            return LOOK_S if self._leaving else None
        return max(0.0, min(self._until, self._look_at) - self._clock())

    def tick(self) -> None:
        """Do what is due: change over, or find that containers have ended."""
        self._let_leave()
        if not self._turns or self._clock() < min(self._until, self._look_at):
            return
        self._look_at = self._clock() + LOOK_S
        alive = self._see()
        for turn in self._turns:
            if turn.group == self._current and turn.container_id in self._refused & self._paused:
                self._unpause(turn.container_id)
        for turn in [turn for turn in self._turns if turn.container_id not in alive]:
            self._turns.remove(turn)
            self._forget(turn.container_id)
        groups = sorted({turn.group for turn in self._turns})
        if len(groups) < 2:
            self.release()  # nobody is left to wait for
        elif self._current not in groups or self._clock() >= self._until:
            later = [group for group in groups if group > (self._current or 0)]
            self._start(later[0] if later else groups[0])

    def release(self) -> None:
        """Let everybody run, and end. What goes wrong with one keeps no other paused.

        Raises `UnavailableError` that says who stays paused, and how to free them; the next run
        that writes, or an undo, frees them too.
        """
        self._leaving += self._turns
        self._turns, self._current = [], None
        why = self._let_all_run()
        for wait in _WAITS_S:
            if not self._leaving or isinstance(why, UnavailableError):
                break  # it has been waited for the engine already
            time.sleep(wait)
            why = self._let_all_run()
        if self._leaving:
            names = self.waiting() or [turn.name for turn in self._leaving]
            raise UnavailableError(f"{still_paused(names)}: {why}")

    def _let_leave(self) -> None:
        """Let run for good who takes no more turns; whom the engine refuses to is tried again."""
        if self._leaving and isinstance(why := self._let_all_run(), UnavailableError):
            raise why

    def _let_all_run(self) -> DltoolsError | None:
        """Let run for good who is leaving; return why the first of those that still are could not
        be."""
        left, reason = [], None
        for turn in self._leaving:
            try:
                self._let_run(turn.container_id)
            except DltoolsError as error:
                left.append(turn)
                reason = reason or error
        self._leaving = left
        return reason

    def mend(self) -> Iterator[tuple[str, str]]:
        """Let run whom an earlier run has left paused; yield their names, each with the reason why
        the engine refuses to, "" where it does not."""
        for path in sorted(self._directory.glob("*.json")):
            note = pauses.load(path)
            if note.engine != self._engine.id:
                continue
            try:
                if self._let_run(note.container_id):
                    yield note.name, ""
            except RefusedError as error:
                yield note.name, str(error)

    def waiting(self) -> list[str]:
        """Return the names of those that were paused when last seen."""
        held = (*self._turns, *self._leaving)
        return [turn.name for turn in held if turn.container_id in self._paused]

    def _start(self, group: int, *, keep: bool = False) -> None:
        """Give a group the turn: first the others are paused, so that nobody competes."""
        for turn in self._turns:
            if turn.group != group:
                self._pause(turn)
        for turn in self._turns:
            if turn.group == group and turn.container_id in self._paused:
                self._unpause(turn.container_id)
        now = self._clock()
        if not (keep and self._current is not None and self._until > now):
            lengths = [turn.seconds for turn in self._turns if turn.group == group]
            self._until = now + max(lengths)
        self._current = group
        self._look_at = now + LOOK_S

    def _see(self) -> set[str]:
        """Return who runs or is paused, and remember who is paused."""
        states = {found["Id"]: found.get("State") for found in self._engine.containers()}
        self._paused = {key for key, state in states.items() if state == "paused"}
        return set(states)

    def _note(self, turn: Turn) -> None:
        """Write down that a container takes turns."""
        known, since = self._noted.get(turn.container_id, (None, stamp()))
        if known == turn:
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot create {self._directory}: {error.strerror}") from error
        with atomic_file(self._path(turn.container_id)) as file:
            file.write(Note(self._engine.id, turn.container_id, turn.name, turn.group,
                            turn.seconds, since, self.run).dump())  # fmt: skip
        self._noted[turn.container_id] = (turn, since)

    def _pause(self, turn: Turn) -> None:
        if turn.container_id in self._paused:
            return
        self._paused.add(turn.container_id)  # even if the engine goes before it answers
        try:
            self._engine.pause(turn.container_id)
        except (GoneError, RefusedError):  # it has ended, or is paused already
            self._paused.discard(turn.container_id)

    def _unpause(self, container_id: str) -> None:
        """Let a container run; one that the engine refuses to is tried again at the next look."""
        self._refused.discard(container_id)
        try:
            self._let_go(container_id)
        except RefusedError:
            self._refused.add(container_id)

    def _let_run(self, container_id: str) -> bool:
        """Let a container run for good, and tell whether it was paused. Raises `DltoolsError`."""
        was_paused = self._let_go(container_id)
        self._forget(container_id)
        return was_paused

    def _let_go(self, container_id: str) -> bool:
        """Let a container run, and tell whether it was paused."""
        try:
            self._engine.unpause(container_id)
        except GoneError:
            return False
        except RefusedError:  # it runs already, has ended, or the engine cannot just now
            try:
                if self._engine.inspect(container_id).state == "paused":
                    raise
            except GoneError:
                pass
            return False
        self._paused.discard(container_id)
        return True

    def _forget(self, container_id: str) -> None:
        self._noted.pop(container_id, None)
        self._refused.discard(container_id)
        self._path(container_id).unlink(missing_ok=True)

    def _path(self, container_id: str) -> Path:
        return self._directory / f"{container_id}.json"
