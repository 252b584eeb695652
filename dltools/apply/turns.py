"""Groups of containers that take turns: the group whose turn it is runs, the others are paused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dltools.apply.turn import Turn
from dltools.apply.turn_files import TurnFiles
from dltools.apply.turn_pauser import TurnPauser
from dltools.engine.containers import Engine
from dltools.engine.runs import ApplyRun
from dltools.errors import UnavailableError

CHECK_S = 0.25
"""How often the rotation checks whether the group whose turn it is has ended (ours)."""


class Rotation:
    """The turns of one engine's containers. While it is empty, no container is paused."""

    def __init__(
        self,
        engine: Engine,
        directory: Path,
        run: ApplyRun | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty. Files in `directory` name the containers that take turns, and `run`, the run
        of dl-apply that pauses them."""
        self.run = run or ApplyRun()
        self._clock = clock
        self._files = TurnFiles(directory, engine.id, engine.host)
        self._pauser = TurnPauser(engine, self._files)
        self._turns: list[Turn] = []
        self._current: int | None = None  # the group whose turn it is
        self._turn_began = self._turn_ends = 0.0
        self._next_check = 0.0

    @property
    def has_turns(self) -> bool:
        """Whether containers take turns."""
        return bool(self._turns)

    def turn_of(self, container_id: str) -> Turn | None:
        """Return a container's turn, None if it takes none."""
        return next((turn for turn in self._turns if turn.container_id == container_id), None)

    def paused_names(self) -> list[str]:
        """Return the names of the containers that were paused when last seen."""
        return self._pauser.paused_names(self._turns)

    def set_turns(self, turns: Sequence[Turn]) -> None:
        """Replace all turns. The group whose turn it is keeps it if a container of it stays, for no
        longer than its turn is now; but if the first group is new, its turn begins at once."""
        known = {turn.container_id for turn in self._turns}
        staying = {turn.container_id for turn in turns}
        had_turn = {turn.container_id for turn in self._turns if turn.group == self._current}
        self._pauser.leave(self._turns, staying)
        self._turns = sorted(turns, key=lambda turn: (turn.group, turn.name))
        self._unpause_leaving()
        for turn in self._turns:
            self._files.write(turn, self.run)
        if not self._turns:
            self._current = None
            return
        self._pauser.refresh()
        kept = next((t.group for t in self._turns if t.container_id in had_turn), None)
        first = {t.container_id for t in self._turns if t.group == self._turns[0].group}
        if kept is None or not first & known:
            self._give_turn_to(self._turns[0].group)
        else:
            self._keep_turn_of(kept)

    def seconds_until_due(self) -> float | None:
        """Return the seconds until `advance` has something to do, None if it never has."""
        if not self._turns:
            return CHECK_S if self._pauser.has_leaving else None
        return max(0.0, min(self._turn_ends, self._next_check) - self._clock())

    def advance(self) -> None:
        """Do what is due: forget containers that have ended, and give the next group its turn."""
        self._unpause_leaving()
        if not self._turns or self._clock() < min(self._turn_ends, self._next_check):
            return
        self._next_check = self._clock() + CHECK_S
        alive = self._pauser.refresh()
        self._pauser.retry(turn for turn in self._turns if turn.group == self._current)
        for turn in [turn for turn in self._turns if turn.container_id not in alive]:
            self._turns.remove(turn)
            self._pauser.forget(turn)
        groups = sorted({turn.group for turn in self._turns})
        if len(groups) < 2:
            self.end()  # no container waits for a turn
        elif self._current not in groups or self._clock() >= self._turn_ends:
            later = [group for group in groups if group > (self._current or 0)]
            self._give_turn_to(later[0] if later else groups[0])

    def end(self) -> None:
        """Unpause all containers and end their turns.

        Raises `UnavailableError` with the names of those that stay paused; the next run or --undo
        unpauses them.
        """
        self._pauser.leave(self._turns)
        self._turns, self._current = [], None
        self._pauser.unpause_all()

    def _unpause_leaving(self) -> None:
        """Unpause containers that take no more turns; those that the engine refuses to unpause are
        tried again later."""
        if isinstance(error := self._pauser.unpause_leaving(), UnavailableError):
            raise error

    def _give_turn_to(self, group: int) -> None:
        """Let one group run for the length of its turn."""
        self._let_run(group)
        lengths = [turn.seconds for turn in self._turns if turn.group == group]
        self._turn_began = self._clock()
        self._turn_ends = self._turn_began + max(lengths)

    def _keep_turn_of(self, group: int) -> None:
        """Let the group that has the turn run on, to the end of its turn."""
        longest = max(turn.seconds for turn in self._turns if turn.group == group)
        self._turn_ends = min(self._turn_ends, self._turn_began + longest)
        if self._current is not None and self._turn_ends > self._clock():
            self._let_run(group)
        else:
            self._give_turn_to(group)

    def _let_run(self, group: int) -> None:
        """Pause the other groups first, then unpause this one, so that none competes with it."""
        for turn in self._turns:
            if turn.group != group:
                self._pauser.pause(turn)
        for turn in self._turns:
            if turn.group == group:
                self._pauser.unpause(turn)
        self._current = group
        self._next_check = self._clock() + CHECK_S
