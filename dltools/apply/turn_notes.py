"""Files that name the containers that take turns, and the run that pauses them.

A file is there before its container is first paused. If dl-apply is killed, the next run or
--undo finds the files and unpauses the containers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dltools.apply.journal import timestamp
from dltools.apply.pauses import unpause
from dltools.apply.turn import Turn
from dltools.engine import pauses
from dltools.engine.containers import Engine, RefusedError
from dltools.engine.pauses import Note, Run
from dltools.errors import OutputError
from dltools.files import atomic_file


class TurnNotes:
    """The files of one engine's containers, all in one directory."""

    def __init__(self, directory: Path, engine_id: str) -> None:
        """The directory is created with the first file."""
        self._directory = directory
        self._engine_id = engine_id
        self._turns: dict[str, Turn] = {}
        self._since: dict[str, str] = {}

    def write(self, turn: Turn, run: Run) -> None:
        """Write down that a container takes turns, unless that is known. Raises `OutputError`."""
        key = turn.container_id
        if self._turns.get(key) == turn:
            return
        since = self._since.setdefault(key, timestamp())
        note = Note(self._engine_id, key, turn.name, turn.group, turn.seconds, since, run)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot create {self._directory}: {error.strerror}") from error
        with atomic_file(self._path(key)) as file:
            file.write(note.dump())
        self._turns[key] = turn

    def remove(self, container_id: str) -> None:
        """Remove the file of a container that takes no more turns."""
        self._turns.pop(container_id, None)
        self._since.pop(container_id, None)
        self._path(container_id).unlink(missing_ok=True)

    def _path(self, container_id: str) -> Path:
        return self._directory / f"{container_id}.json"


@dataclass(frozen=True, slots=True)
class Unpaused:
    """A container that an earlier run had left paused. `refusal` says why the engine leaves it
    paused, "" where it has been unpaused."""

    name: str
    refusal: str = ""


def unpause_all_noted(engine: Engine, directory: Path) -> Iterator[Unpaused]:
    """Unpause the containers that earlier runs have left paused, and yield each."""
    for path in sorted(directory.glob("*.json")):
        note = pauses.load(path)
        if note.engine != engine.id:
            continue
        try:
            was_paused = unpause(engine, note.container_id)
        except RefusedError as error:
            yield Unpaused(note.name, str(error))
            continue
        path.unlink(missing_ok=True)
        if was_paused:
            yield Unpaused(note.name)
