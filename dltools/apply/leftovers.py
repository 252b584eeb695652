"""Unpausing the containers that an earlier run has left paused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dltools.apply.pauses import unpause
from dltools.engine.identity import own_records
from dltools.engine.interface import Engine, RefusedError
from dltools.engine.state_folder import StateFolder
from dltools.engine.turn_notes import read_note


@dataclass(frozen=True, slots=True)
class Leftover:
    """A container that was left paused. `refusal` says why the engine leaves it paused, "" where
    it is unpaused now."""

    name: str
    refusal: str = ""


def unpause_leftovers(engine: Engine, directory: Path) -> Iterator[Leftover]:
    """Unpause the containers that notes in a directory name, and yield those that were paused.

    Raises `DataError` for a damaged note.
    """
    folder = StateFolder(directory)
    for name in folder.names():
        note = read_note(folder, name)
        if note is None or note.engine != engine.id or not own_records(engine, [note]):
            continue
        try:
            was_paused = unpause(engine, note.container_id)
        except RefusedError as error:
            yield Leftover(note.name, str(error))
            continue
        folder.remove(name)
        if was_paused:
            yield Leftover(note.name)
