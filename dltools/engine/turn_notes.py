"""Notes of containers that take turns: files that outlive the dl-apply that wrote them.

So dl-probe and the next dl-apply know which containers may have been left paused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.state_folder import StateFolder
from dltools.errors import AccessError, DataError
from dltools.notation.json_text import parse_json

_NAMED = 5
"""How many containers a message names."""


@dataclass(frozen=True, slots=True)
class TurnNote:
    """A container that takes turns: the number of its group, the length of its turn (s), since when
    (RFC 3339), by which run, and on which host; the name of the queue, "" for that of the CPUs."""

    engine: str
    container_id: str
    name: str
    group: int = 0
    seconds: float = 0.0
    since: str = ""
    run: ApplyRun = UNKNOWN_RUN
    host: str = ""
    queue: str = ""

    def to_json(self) -> bytes:
        """Return the note as the text of its file."""
        return json.dumps(asdict(self)).encode()


def read_note(folder: StateFolder, name: str) -> TurnNote | None:
    """Read a note; None if it is gone. Raises `DataError`."""
    text = folder.read(name)
    if text is None:
        return None
    try:
        data: Any = parse_json(text)
        return TurnNote(
            str(data["engine"]),
            str(data["container_id"]),
            str(data["name"]),
            int(data["group"]),
            float(data["seconds"]),
            str(data["since"]),
            ApplyRun.from_json(data["run"]),
            str(data["host"]),
            str(data["queue"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        where = folder.path / name
        raise DataError(f"{where}: damaged note of a container's turns: {error}") from error


def read_notes(directories: Iterable[Path], engine: str | None) -> dict[str, TurnNote]:
    """Return the notes of one engine's containers (None: of all) in state directories, by id.

    Notes that cannot be read, or trusted, are left out.
    """
    found: dict[str, TurnNote] = {}
    for directory in directories:
        for note in _readable_notes(StateFolder(directory / "rotation")):
            if engine in (None, note.engine):
                found.setdefault(note.container_id, note)
    return found


def _readable_notes(folder: StateFolder) -> Iterator[TurnNote]:
    with suppress(AccessError):
        for name in folder.names():
            with suppress(AccessError, DataError):
                if note := read_note(folder, name):
                    yield note


def listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def left_paused(names: Sequence[str]) -> str:
    """Say that an earlier run has left containers paused, and how to unpause them."""
    return f"an earlier dl-apply has left {listed(names)} paused; {how_to_unpause(names)}"


def how_to_unpause(names: Sequence[str]) -> str:
    """Say how to unpause containers."""
    return f"run dl-apply --undo, or docker unpause {' '.join(names[:_NAMED])}"
