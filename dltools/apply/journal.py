"""The settings that containers had before dl-apply first changed them: a file for each container.

An entry is on disk before the change is made: `dl-apply --undo` can restore a container, however
the run ended that changed it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.errors import DataError, OutputError
from dltools.files import atomic_file
from dltools.plan.realisation.settings import Settings

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One container as it was.

    `fields` are the engine's, `settings` those in force, `kernel` the texts of the kernel's files,
    {} if these were not visible. `state` is running or paused, and None while dl-apply has
    changed only settings. `since` (RFC 3339) and `run` tell when and by which run the entry was
    made; both are empty in entries of earlier versions.
    """

    engine: str
    container_id: str
    container_name: str
    fields: Mapping[str, Any]
    settings: Settings
    kernel: Mapping[str, str]
    state: str | None = None
    since: str = ""
    run: ApplyRun = UNKNOWN_RUN


class Journal:
    """Entries under one directory."""

    def __init__(self, directory: Path) -> None:
        """The directory is created with the first entry."""
        self._directory = directory

    def add(self, entry: Entry) -> bool:
        """Add the entry of a container that has none, and tell whether that was so.

        An entry that has no state yet gets that of the new one. Raises `OutputError`.
        """
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

    def find(self, container_id: str) -> Entry | None:
        """Return the entry of a container, None if it has none. Raises `DataError`."""
        path = self._path(container_id)
        return self._load(path) if path.exists() else None

    def entries(self, engine: str) -> list[Entry]:
        """Return the entries of one engine's containers, by name. Raises `DataError`."""
        found = [self._load(path) for path in sorted(self._directory.glob("*.json"))]
        mine = [entry for entry in found if entry.engine == engine]
        return sorted(mine, key=lambda entry: (entry.container_name, entry.container_id))

    def remove(self, entry: Entry) -> None:
        """Remove the entry of a container that is as it was, or gone."""
        self._path(entry.container_id).unlink(missing_ok=True)

    def _path(self, container_id: str) -> Path:
        return self._directory / f"{container_id}.json"

    def _load(self, path: Path) -> Entry:
        try:
            data = json.loads(path.read_bytes())
            if data.pop("v") != VERSION:
                raise ValueError("it has another version")
            data["run"] = ApplyRun.from_json(data.get("run") or {})
            entry = Entry(**data)
            _check_types(entry)
            return entry
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{path}: damaged journal entry: {error}") from error


def _check_types(entry: Entry) -> None:
    texts = (entry.engine, entry.container_id, entry.container_name, entry.since)
    tables = (entry.fields, entry.settings, entry.kernel)
    if entry.state not in (None, "running", "paused"):
        raise ValueError("its state is neither running nor paused")
    if not all(isinstance(text, str) for text in texts) or not all(
        isinstance(table, dict) for table in tables
    ):
        raise ValueError("a value has the wrong type")


def timestamp() -> str:
    """Return the time now as RFC 3339 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
