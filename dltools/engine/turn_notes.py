"""Notes of containers that take turns: files that outlive the dl-apply that wrote them.

So dl-probe and the next dl-apply know which containers may have been left paused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.state_records import Records

_NAMED = 5
"""How many containers a message names."""


@dataclass(frozen=True, slots=True)
class TurnNote:
    """A container that takes turns: the number of its group, the length of its turn (s), since when
    (RFC 3339), and by which run; the name of the queue, "" for that of the CPUs. `engine` and
    `host` tell where the container is."""

    engine: str
    host: str
    container_id: str
    container_name: str
    group: int
    seconds: float
    since: str
    run: ApplyRun = UNKNOWN_RUN
    queue: str = ""


class TurnNotes(Records[TurnNote]):
    """The notes in one directory."""

    record_type = TurnNote
    what = "note of a container's turns"


def read_notes(directories: Iterable[Path], engine: str | None) -> dict[str, TurnNote]:
    """Return the notes of one engine's containers (None: of all) in state directories, by id.

    Notes that cannot be read, or trusted, are left out.
    """
    found: dict[str, TurnNote] = {}
    for directory in directories:
        for note in TurnNotes(directory / "rotation").readable():
            if engine in (None, note.engine):
                found.setdefault(note.container_id, note)
    return found


def listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def left_paused(names: Sequence[str]) -> str:
    """Say that an earlier run has left containers paused, and how to unpause them."""
    return f"an earlier dl-apply has left {listed(names)} paused; {how_to_unpause(names)}"


def how_to_unpause(names: Sequence[str]) -> str:
    """Say how to unpause containers. One of Docker or Podman has no slash in its name."""
    others = any("/" in name for name in names)
    return "run dl-apply --undo" + (
        "" if others else f", or docker unpause {' '.join(names[:_NAMED])}"
    )
