"""Groups of containers that take turns: all but one group are paused, and change over in time.

Before a container is first paused, a file says so. Whatever ends the run, kill -9 included, the
next one that writes, or an undo, finds the files and leaves nobody paused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dltools.errors import DataError, DltoolsError, OutputError
from dltools.files import atomic_file
from dltools.probe.engine import Engine, GoneError, RefusedError

LOOK_S = 0.25
"""How often it is looked whether the group that has the turn has ended (ours)."""


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
        self, engine: Engine, directory: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin empty; the directory is made when the first container is to be paused."""
        self._engine = engine
        self._directory = directory
        self._clock = clock
        self._turns: list[Turn] = []
        self._groups: list[int] = []
        self._current: int | None = None
        self._until = 0.0
        self._look_at = 0.0
        self._paused: set[str] = set()  # as last seen

    @property
    def active(self) -> bool:
        """Whether anybody takes turns."""
        return bool(self._turns)

    def holds(self, container_id: str, turn: Turn | None = None) -> bool:
        """Tell whether a container takes turns, or has just this place in the rotation."""
        return any(t.container_id == container_id and turn in (None, t) for t in self._turns)

    def follow(self, turns: Sequence[Turn]) -> None:
        """Go over to a schedule. Who has the turn keeps it where it is still in a group."""
        dropped = {turn.container_id for turn in self._turns} - {t.container_id for t in turns}
        running = {t.container_id for t in self._turns if t.group == self._current}
        self._turns = sorted(turns, key=lambda turn: (turn.group, turn.name))
        for container_id in sorted(dropped):
            self._unpause(container_id)
            self._forget(container_id)
        if not self._turns:
            self._current = None
            return
        self._see()
        kept = next((t.group for t in self._turns if t.container_id in running), None)
        self._start(self._turns[0].group if kept is None else kept, keep=kept is not None)

    def wait_s(self) -> float | None:
        """Return the seconds until there is something to do, None where there is nothing."""
        if not self._turns:
            return None
        return max(0.0, min(self._until, self._look_at) - self._clock())

    def tick(self) -> None:
        """Do what is due: change over, or find that containers have ended."""
        if not self._turns or self._clock() < min(self._until, self._look_at):
            return
        self._look_at = self._clock() + LOOK_S
        alive = self._see()
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
        """Let everybody run, and end. What goes wrong with one keeps no other paused; it is raised
        in the end, and the next run mends it."""
        turns, self._turns, self._current = self._turns, [], None
        failed: DltoolsError | None = None
        for turn in turns:
            try:
                self._unpause(turn.container_id)
                self._forget(turn.container_id)
            except DltoolsError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def mend(self) -> list[str]:
        """Let run whom an earlier run has left paused; return their names."""
        mended = []
        for path in sorted(self._directory.glob("*.json")):
            engine, container_id, name = _load(path)
            if engine == self._engine.id:
                if self._unpause(container_id):
                    mended.append(name)
                self._forget(container_id)
        return mended

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

    def _pause(self, turn: Turn) -> None:
        if turn.container_id in self._paused:
            return
        path = self._path(turn.container_id)
        if not path.exists():
            try:
                self._directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"cannot create {self._directory}: {error.strerror}") from error
            with atomic_file(path) as file:
                told = [self._engine.id, turn.container_id, turn.name]
                file.write(json.dumps(told).encode())
        with suppress(GoneError, RefusedError):  # it has ended, or is paused already
            self._engine.pause(turn.container_id)
            self._paused.add(turn.container_id)

    def _unpause(self, container_id: str) -> bool:
        try:
            self._engine.unpause(container_id)
            self._paused.discard(container_id)
        except (GoneError, RefusedError):
            return False  # it has ended, or runs already
        return True

    def _forget(self, container_id: str) -> None:
        self._path(container_id).unlink(missing_ok=True)

    def _path(self, container_id: str) -> Path:
        return self._directory / f"{container_id}.json"


def _load(path: Path) -> tuple[str, str, str]:
    try:
        engine, container_id, name = json.loads(path.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: damaged note of a pause: {error}") from error
    return str(engine), str(container_id), str(name)
