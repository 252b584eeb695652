"""Pausing and unpausing the containers that take turns.

Only the engine pauses and unpauses. The kernel's freezer could unpause a container while no engine
answers, but the engine would go on saying "paused" and refuse its own unpause from then on:
"container not paused" (measured, Docker 20.10). So if no engine answers, an error says which
containers are paused, and how to unpause them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from dltools.apply.pauses import unpause
from dltools.apply.turn import Turn
from dltools.apply.turn_files import TurnFiles
from dltools.engine.containers import Engine, GoneError, RefusedError
from dltools.engine.turn_notes import how_to_unpause, listed
from dltools.errors import DltoolsError, UnavailableError

_WAITS_S = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Waits between attempts: an engine that is stopping refuses to unpause for a while."""


class TurnPauser:
    """Pauses and unpauses containers of one engine. Those that leave the rotation are unpaused for
    good, and their files removed."""

    def __init__(self, engine: Engine, files: TurnFiles) -> None:
        """No container is paused yet."""
        self._engine = engine
        self._files = files
        self._paused: set[str] = set()  # when last seen
        self._refused: set[str] = set()  # the engine refused to unpause them
        self._leaving: list[Turn] = []

    @property
    def has_leaving(self) -> bool:
        """Whether containers that take no more turns are still to be unpaused."""
        return bool(self._leaving)

    def refresh(self) -> set[str]:
        """See which containers are paused, and return the ids of all that run or are paused."""
        states = {found["Id"]: found.get("State") for found in self._engine.containers()}
        self._paused = {key for key, state in states.items() if state == "paused"}
        return set(states)

    def paused_names(self, turns: Iterable[Turn]) -> list[str]:
        """Return the names of these and of leaving containers that were paused when last seen."""
        return [t.name for t in (*turns, *self._leaving) if t.container_id in self._paused]

    def pause(self, turn: Turn) -> None:
        """Pause a container unless it is paused or has ended."""
        if turn.container_id in self._paused:
            return
        self._paused.add(turn.container_id)  # even if the engine goes away before it answers
        try:
            self._engine.pause(turn.container_id)
        except (GoneError, RefusedError):  # it has ended, or is paused already
            self._paused.discard(turn.container_id)

    def unpause(self, turn: Turn) -> None:
        """Unpause a container; `retry` tries again if the engine refuses."""
        if turn.container_id not in self._paused:
            return
        self._refused.discard(turn.container_id)
        try:
            self._unpause(turn)
        except RefusedError:
            self._refused.add(turn.container_id)

    def retry(self, turns: Iterable[Turn]) -> None:
        """Unpause again those that the engine has refused to unpause."""
        for turn in turns:
            if turn.container_id in self._refused:
                self.unpause(turn)

    def forget(self, turn: Turn) -> None:
        """Forget a container that has ended or takes no more turns."""
        self._refused.discard(turn.container_id)
        self._files.remove(turn.container_id)

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
        if unpause(self._engine, turn.container_id):
            self._paused.discard(turn.container_id)
