"""The settings that containers had before they were first changed: a file a container.

An entry is on disk before the change is made, so that `dl-apply --undo` can always put things
back, whatever ended the run that changed them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dltools.engine.pauses import Run
from dltools.errors import DataError, OutputError
from dltools.files import atomic_file
from dltools.plan.realisation.settings import Settings

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One container as it was found: the engine's own fields, the settings in force, the texts of
    the kernel's files ({} where these were out of sight), and its state, running or paused, once
    that has been changed (None before); when that was (RFC 3339) and by which run, both empty in
    entries of earlier versions."""

    engine: str
    container_id: str
    container_name: str
    fields: Mapping[str, Any]
    settings: Settings
    kernel: Mapping[str, str]
    state: str | None = None
    since: str = ""
    run: Run = field(default_factory=Run)


class Journal:
    """Entries under one directory."""

    def __init__(self, directory: Path) -> None:
        """The directory is made when the first entry is."""
        self._directory = directory

    @property
    def directory(self) -> Path:
        """Where the entries are."""
        return self._directory

    def add(self, entry: Entry) -> bool:
        """Record a container unless it is recorded already, and tell whether it was not; its state,
        if it is given now and was not before. Raises `OutputError`."""
        path = self._path(entry.container_id)
        new = not path.exists()
        if not new:
            known = self._load(path)
            if entry.state is None or known.state is not None:
                return False
            entry = replace(known, state=entry.state)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot create {self._directory}: {error.strerror}") from error
        with atomic_file(path) as file:
            file.write(json.dumps({"v": VERSION, **asdict(entry)}).encode())
        return new

    def entries(self, engine: str) -> list[Entry]:
        """Return the containers of one engine that are recorded, by name."""
        found = [self._load(path) for path in sorted(self._directory.glob("*.json"))]
        mine = [entry for entry in found if entry.engine == engine]
        return sorted(mine, key=lambda entry: (entry.container_name, entry.container_id))

    def remove(self, entry: Entry) -> None:
        """Forget a container that is as it was again, or gone."""
        self._path(entry.container_id).unlink(missing_ok=True)

    def _path(self, container_id: str) -> Path:
        return self._directory / f"{container_id}.json"

    def _load(self, path: Path) -> Entry:
        try:
            data = json.loads(path.read_bytes())
            if data.pop("v") != VERSION:
                raise ValueError("of another version")
            data["run"] = Run.read(data.get("run") or {})
            entry = Entry(**data)
            texts = (entry.engine, entry.container_id, entry.container_name, entry.since)
            tables = (entry.fields, entry.settings, entry.kernel)
            if entry.state not in (None, "running", "paused"):
                raise ValueError("a state is neither running nor paused")
            if not all(isinstance(text, str) for text in texts) or not all(
                isinstance(table, dict) for table in tables
            ):
                raise ValueError("a value is of the wrong type")
            return entry
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{path}: damaged journal entry: {error}") from error
