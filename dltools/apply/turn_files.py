"""Files that name the containers that take turns, and the run that pauses them.

A file is there before its container is first paused. If dl-apply is killed, the next run or
--undo finds the files and unpauses the containers.
"""

from __future__ import annotations

from pathlib import Path

from dltools.apply.journal import timestamp
from dltools.apply.turn import Turn
from dltools.engine.runs import ApplyRun
from dltools.engine.state_folder import StateFolder
from dltools.engine.turn_notes import TurnNote


class TurnFiles:
    """The files of one engine's containers, all in one directory."""

    def __init__(self, directory: Path, engine_id: str, host: str = "") -> None:
        """The directory is created with the first file."""
        self._folder = StateFolder(directory)
        self._engine_id, self._host = engine_id, host
        self._turns: dict[str, Turn] = {}
        self._since: dict[str, str] = {}

    def write(self, turn: Turn, run: ApplyRun) -> None:
        """Write down that a container takes turns, unless that is known. Raises `OutputError`."""
        key = turn.container_id
        if self._turns.get(key) == turn:
            return
        since = self._since.get(key) or timestamp()
        note = TurnNote(self._engine_id, key, turn.name, turn.group, turn.seconds, since, run,
                        self._host)  # fmt: skip
        self._folder.write(f"{key}.json", note.to_json())
        self._turns[key], self._since[key] = turn, since

    def remove(self, container_id: str) -> None:
        """Remove the file of a container that takes no more turns."""
        self._turns.pop(container_id, None)
        self._since.pop(container_id, None)
        self._folder.remove(f"{container_id}.json")
