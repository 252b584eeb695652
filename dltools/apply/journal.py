"""The settings that containers had before dl-apply first changed them: a file for each container.

An entry is on disk before the change is made: `dl-apply --undo` can restore a container, however
the run ended that changed it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dltools.engine.interface import CpuLimits
from dltools.engine.owner_limits import JOURNAL_VERSION, entry_name
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.state_folder import StateFolder
from dltools.errors import DataError
from dltools.notation.json_text import parse_json

_LONGEST_S = 1e9
"""Longest lease (s), about thirty years: later times need not be dates."""

_MOST_OURS = 6
"""Settings of ours that are known again: before and after each of the last three changes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One container as it was.

    `fields` are the engine's, `settings` those in force, `kernel` the texts of the kernel's files,
    {} if these were not visible. `state` is running or paused, and None while dl-apply has
    changed only settings. `started` tells when the container had been started whose state that is
    (the engine's text): a state counts until the container is started again. `since` (RFC 3339)
    and `run` tell when and by which run the entry was made. All three are empty in entries of
    earlier versions. `leased_by` is the run that has changed the container under lease: when that
    run is over, so is the change. `until` (RFC 3339) is when the lease ends that a run has left
    behind. Both are empty where the change is to stay. `ours` are the settings
    before and after the last changes: others are somebody else's. It is empty where that cannot be
    told. `host` is the name of the engine's host, "" in entries of earlier versions.
    """

    engine: str
    container_id: str
    container_name: str
    fields: Mapping[str, Any]
    settings: CpuLimits
    kernel: Mapping[str, str]
    state: str | None = None
    since: str = ""
    run: ApplyRun = UNKNOWN_RUN
    started: str = ""
    leased_by: ApplyRun = UNKNOWN_RUN
    ours: Sequence[CpuLimits] = ()
    host: str = ""
    until: str = ""

    @property
    def is_leased(self) -> bool:
        """Whether the change is to end by itself."""
        return self.leased_by != UNKNOWN_RUN or bool(self.until)

    def has_expired(self, now: str) -> bool:
        """Tell whether the lease that a run has left behind is over at a time (RFC 3339, in UTC to
        the second)."""
        return bool(self.until) and self.until <= now

    def with_state_of(self, newer: Entry) -> Entry:
        """Return the entry with the state of a newer one, if that has one and this has none of the
        container's present run."""
        known = self.state is not None and self.started in ("", newer.started)
        if newer.state is None or known:
            return self
        return replace(self, state=newer.state, started=newer.started)


class Journal:
    """Entries under one directory."""

    def __init__(self, directory: Path) -> None:
        """The directory is created with the first entry."""
        self._folder = StateFolder(directory)

    def add(self, entry: Entry) -> bool:
        """Add the entry of a container that has none, and tell whether that was so.

        An entry that has no state of the container's present run gets that of the new one, and any
        gets the new one's lease and settings of ours. Raises `OutputError`.
        """
        known = self.find(entry.container_id)
        if known is not None:
            # The engine may yet carry out what a run asked for that was killed since.
            ours = (*known.ours, *entry.ours)[-_MOST_OURS:]
            entry = replace(
                known.with_state_of(entry), leased_by=entry.leased_by, ours=ours, until=entry.until
            )
            if entry == known:
                return False
        self._write(entry)
        return known is None

    def find(self, container_id: str) -> Entry | None:
        """Return the entry of a container, None if it has none. Raises `DataError`."""
        return self._load(entry_name(container_id))

    def keep(self, entries: Iterable[Entry]) -> None:
        """Let changes stay that were made under lease. Raises `OutputError`."""
        for entry in entries:
            if entry.is_leased:
                self._write(replace(entry, leased_by=UNKNOWN_RUN, until=""))

    def lease_to(self, entries: Iterable[Entry], run: ApplyRun) -> None:
        """Let leases that runs before have left behind end with this run. Raises `OutputError`."""
        for entry in entries:
            if entry.until:
                self._write(replace(entry, leased_by=run, until=""))

    def lease_until(self, entries: Iterable[Entry], until: str) -> None:
        """Let changes under lease stay until a time (RFC 3339). Raises `OutputError`."""
        for entry in entries:
            self._write(replace(entry, leased_by=UNKNOWN_RUN, until=until))

    def next_end(self) -> str:
        """Return when the first lease ends that a run has left behind (RFC 3339), "" if there is
        none. Raises `DataError`."""
        found = [self._load(name) for name in self._folder.names()]
        return min((entry.until for entry in found if entry and entry.until), default="")

    def _write(self, entry: Entry) -> None:
        text = json.dumps({"v": JOURNAL_VERSION, **asdict(entry)})
        self._folder.write(entry_name(entry.container_id), text.encode())

    def entries(self, engine: str) -> list[Entry]:
        """Return the entries of one engine's containers, by name. Raises `DataError`."""
        found = [self._load(name) for name in self._folder.names()]
        mine = [entry for entry in found if entry and entry.engine == engine]
        return sorted(mine, key=lambda entry: (entry.container_name, entry.container_id))

    def remove(self, entry: Entry) -> None:
        """Remove the entry of a container that is as it was, or gone."""
        self._folder.remove(entry_name(entry.container_id))

    def _load(self, name: str) -> Entry | None:
        text = self._folder.read(name)
        if text is None:
            return None
        try:
            data = parse_json(text)
            if data.pop("v") != JOURNAL_VERSION:
                raise ValueError("it has another version")
            for key in ("run", "leased_by"):
                data[key] = ApplyRun.from_json(data.get(key) or {})
            data["ours"] = tuple(data.get("ours") or ())
            entry = Entry(**data)
            _check_types(entry)
            return entry
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            where = self._folder.path / name
            raise DataError(f"{where}: damaged journal entry: {error}") from error


def _check_types(entry: Entry) -> None:
    texts = (
        entry.engine,
        entry.container_id,
        entry.container_name,
        entry.since,
        entry.started,
        entry.host,
        entry.until,
    )
    tables = (entry.fields, entry.settings, entry.kernel, *entry.ours)
    if entry.state not in (None, "running", "paused"):
        raise ValueError("its state is neither running nor paused")
    if not all(isinstance(text, str) for text in texts) or not all(
        isinstance(table, dict) for table in tables
    ):
        raise ValueError("a value has the wrong type")


def timestamp(in_s: float = 0.0) -> str:
    """Return the time now, or in so many seconds, as RFC 3339 in UTC, to the second."""
    at = datetime.now(UTC) + timedelta(seconds=min(in_s, _LONGEST_S))
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
