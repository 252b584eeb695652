"""Notes of containers that take turns: files that outlive the dl-apply that wrote them.

So dl-probe and the next dl-apply know which containers may have been left paused.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dltools.engine.interface import Engine
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.state_records import EngineRecord, Records
from dltools.text import listed

_UNPAUSED = 5
"""How many containers an advice to unpause names."""


@dataclass(frozen=True, slots=True)
class TurnNote(EngineRecord):
    """A container that takes turns."""

    group: int
    """The number of its group, from 0 in order of the turns."""

    seconds: float
    """The length of its turn (s)."""

    since: str
    """When it began to take turns (RFC 3339)."""

    run: ApplyRun = UNKNOWN_RUN
    """The run of dl-apply that gives the turns."""

    queue: str = ""
    """The name of the queue, "" for that of the CPUs."""

    paused_at: float | None = 0.0
    """When dl-apply was about to pause it (s since 1970; 0: an older version did not say), None
    while it has not done so: then another's pause is another's."""

    def holds(self, engine: Engine) -> bool:
        """Tell whether it was dl-apply that paused the container, if it is paused now. After a
        crash somebody may have unpaused and paused it: then the engine remembers a second pause.
        That is asked of engines here alone, as times are this machine's."""
        if not self.paused_at or not engine.is_local:
            return self.paused_at is not None
        since = engine.past_events(self.paused_at, time.time())
        pauses = [event for event in since if event.container_id == self.container_id]
        return [pause.action for pause in pauses].count("pause") <= 1


class TurnNotes(Records[TurnNote]):
    """The notes in one directory."""

    record_type = TurnNote
    what = "note of a container's turns"


def read_notes(directories: Iterable[Path], engine: str | None) -> dict[str, TurnNote]:
    """Return the notes of one engine's containers (None: of all) in state directories, by id.

    Notes that cannot be read, or trusted, are left out.
    """
    notes: dict[str, TurnNote] = {}
    for directory in directories:
        for note in TurnNotes(directory / "rotation").readable():
            if engine in (None, note.engine):
                notes.setdefault(note.container_id, note)
    return notes


def left_paused(names: Sequence[str]) -> str:
    """Say that an earlier run has left containers paused, and how to unpause them."""
    return f"an earlier dl-apply has left {listed(names)} paused; {how_to_unpause(names)}"


def how_to_unpause(names: Sequence[str]) -> str:
    """Say how to unpause containers. One of Docker or Podman has no slash in its name."""
    others = any("/" in name for name in names)
    return "run dl-apply --undo" + (
        "" if others else f", or docker unpause {' '.join(names[:_UNPAUSED])}"
    )
