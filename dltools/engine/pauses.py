"""Who holds a container: which run of dl-apply, and whether that still runs.

Notes of turns are files, so that dl-probe and the next dl-apply know of them, whatever ended the
run that wrote them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dltools.errors import DataError

_NAMED = 5
"""How many containers a message names."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of dl-apply: its process, when that began (clock ticks since the machine's start), its
    command line, and the policy whose plan it carries out. All are empty where nobody noted it."""

    pid: int = 0
    began: int = 0
    command: str = ""
    policy: str = ""

    @property
    def alive(self) -> bool:
        """Whether its process still runs; another with the same number is not it."""
        if self.pid <= 0:
            return False
        began = _began(self.pid)
        return began == self.began if began else _exists(self.pid)

    @classmethod
    def this(cls, command: str) -> Run:
        """Return the run of this process."""
        return cls(os.getpid(), _began(os.getpid()), command)

    @classmethod
    def read(cls, data: object) -> Run:
        """Return a run from JSON values. Raises TypeError or ValueError."""
        if not isinstance(data, Mapping):
            raise TypeError("a run is not an object")
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        for name, value in known.items():
            if type(value) is not type(getattr(_NOBODY, name)):
                raise ValueError(f"a run's {name} is of the wrong type")
        return cls(**known)


_NOBODY = Run()


def _exists(pid: int) -> bool:
    """Tell whether a process is there that /proc does not show."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False  # /proc would have shown it: it has ended just now


def _began(pid: int) -> int:
    """Return when a process began in clock ticks since the machine's start, 0 where there is none;
    its name, which may hold anything, ends with the last bracket."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


@dataclass(frozen=True, slots=True)
class Note:
    """A container that takes turns: the number of its group, the length of its turn (s), since when
    (RFC 3339) and by which run."""

    engine: str
    container_id: str
    name: str
    group: int = 0
    seconds: float = 0.0
    since: str = ""
    run: Run = _NOBODY

    def dump(self) -> bytes:
        """Return the note as JSON."""
        return json.dumps(asdict(self)).encode()


def load(path: Path) -> Note:
    """Read a note, one of an earlier version too. Raises `DataError`."""
    try:
        data: Any = json.loads(path.read_bytes())
        if isinstance(data, list):
            engine, container_id, name = map(str, data)
            return Note(engine, container_id, name)
        return Note(
            str(data["engine"]), str(data["container_id"]), str(data["name"]), int(data["group"]),
            float(data["seconds"]), str(data["since"]), Run.read(data["run"]),
        )  # fmt: skip
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path}: damaged note of a pause: {error}") from error


def notes(places: Iterable[Path], engine: str | None) -> dict[str, Note]:
    """Return the notes of an engine's containers (None: of any) by id, of all places; what cannot
    be read is left out."""
    found: dict[str, Note] = {}
    for place in places:
        for path in sorted((place / "rotation").glob("*.json")):
            try:
                note = load(path)
            except DataError:
                continue
            if engine in (None, note.engine):
                found.setdefault(note.container_id, note)
    return found


def listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def left_paused(names: Sequence[str]) -> str:
    """Say that a run was killed and left containers paused, and how to unpause them."""
    return f"a killed dl-apply has left {listed(names)} paused; {how_to_unpause(names)}"


def how_to_unpause(names: Sequence[str]) -> str:
    """Say how to unpause containers."""
    return f"run dl-apply --undo, or docker unpause {' '.join(names[:_NAMED])}"
