"""Containers that dl-apply has changed and not yet restored, for `dl-apply --status`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from dltools.actions.settings import Settings, TurnSettings, as_found
from dltools.apply.migrate.migration import Migration, MigrationFiles
from dltools.apply.original_settings import foreign_settings, is_restored
from dltools.engine.interface import Engine, GoneError, LocatedContainer
from dltools.engine.journal import Entry, Journal
from dltools.engine.limits.cpu_limits import Locator, current_settings
from dltools.engine.links import own_records
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.turn_notes import TurnNote, read_notes
from dltools.errors import AccessError, DataError
from dltools.notation.limits import only


@dataclass(frozen=True, slots=True)
class ChangedContainer:
    """A container that dl-apply has changed."""

    container_id: str
    """The engine's id of the container."""

    name: str
    """Its present name; that of its record, where it is gone."""

    original: Settings
    """Its settings before the first change."""

    current: Settings | None
    """Its settings now, with its state where that is not running; None where it is gone."""

    since: str
    """When it was changed (RFC 3339), "" if unknown."""

    run: ApplyRun
    """The run that changed it."""

    state_directory: Path
    """Whose journal or note says so."""

    until: str = ""
    """When its lease ends (RFC 3339), "" if no end is known."""

    ends_with: ApplyRun = UNKNOWN_RUN
    """The run whose end is the end of the change, `UNKNOWN_RUN` where that is no run's."""

    is_foreign: bool = False
    """Whether somebody else has changed it since: what is not as it was is left alone."""


class _Known(NamedTuple):
    """What a state directory says of a container: a journal entry, a note of its turns, or both."""

    entry: Entry | None
    note: TurnNote | None
    state_directory: Path


def changed_containers(engine: Engine, directories: Iterable[Path]) -> list[ChangedContainer]:
    """Return the changed containers of an engine, by name. Raises as the engine does."""
    by_id: dict[str, _Known] = {}
    for directory in directories:
        turn_notes = own_records(engine, read_notes([directory], engine.id).values())
        notes = {note.container_id: note for note in turn_notes}
        entries = {entry.container_id: entry for entry in journal_entries(engine, directory)}
        for key in {**entries, **notes}:
            by_id.setdefault(key, _Known(entries.get(key), notes.get(key), directory))
    locator = Locator(engine)
    changed = [_changed_container(engine, locator, records) for records in by_id.values()]
    return sorted(changed, key=attrgetter("name", "container_id"))


def open_migrations(directories: Iterable[Path]) -> list[Migration]:
    """Return the migrations that are neither finished nor rolled back, by name; those of a
    directory that cannot be read are left out."""
    migrations: list[Migration] = []
    for directory in directories:
        with suppress(DataError, AccessError):
            migrations += MigrationFiles(directory / "migrations").all()
    left = (migration for migration in migrations if migration.is_open)
    return sorted(left, key=attrgetter("container_name", "container_id"))


def journal_entries(engine: Engine, directory: Path) -> list[Entry]:
    """Return what a state directory's journal says of an engine's containers, as far as it can be
    read: it may be another user's."""
    return own_records(engine, Journal(directory / "journal").readable())


def _changed_container(engine: Engine, locator: Locator, records: _Known) -> ChangedContainer:
    entry, note, directory = records
    record = entry or note
    assert record is not None
    located, current = None, None
    with suppress(GoneError):
        located = locator.locate_by_id(record.container_id)
        current = _current(engine, located, records)
    leased_by = entry.leased_by if entry else UNKNOWN_RUN
    return ChangedContainer(
        container_id=record.container_id,
        name=located.container.name if located else record.container_name,
        original=_original(records, current),
        current=current,
        since=record.since,
        run=note.run if note and (note.run.is_alive or not entry) else record.run,
        state_directory=directory,
        until=entry.until if entry else "",
        ends_with=note.run if note and not entry else leased_by,
        is_foreign=bool(current and located and entry and _is_left_alone(engine, located, entry)),
    )


def _is_left_alone(engine: Engine, located: LocatedContainer, entry: Entry) -> bool:
    """Tell whether somebody else has changed all settings that are not as they were."""
    foreign = foreign_settings(engine, located, entry)
    return bool(foreign) and is_restored(engine, located, entry, entry.names - foreign)


def _current(engine: Engine, located: LocatedContainer, records: _Known) -> Settings:
    """Return the settings that a container has now, with its state and turn where these may have
    been changed, or where it does not run."""
    current, note = as_found(current_settings(engine, located)), records.note
    if note or (records.entry and records.entry.state) or located.container.state != "running":
        current["state"] = located.container.state
    if note and note.seconds and note.run.is_alive:
        current["group"], current["turn_s"] = note.group, note.seconds
        if note.queue:
            current["queue"] = note.queue
    return current


def _original(records: _Known, current: Settings | None) -> Settings:
    """Return the settings that a container had; a turn changes none but its state."""
    entry = records.entry
    if current is None:
        return as_found(entry.settings) if entry else {}
    settings = as_found(entry.settings if entry else current)
    original = only(settings, current.keys() - _OF_TURNS)
    if "state" in current:
        original["state"] = (entry and entry.state) or "running"
    return original


_OF_TURNS = {"state", *TurnSettings.__annotations__}


def paused_elsewhere(engine: Engine, directories: Iterable[Path]) -> list[str]:
    """Return the names of paused containers whose pause is in no state directory."""
    ids: set[str] = set()
    for directory in directories:
        notes = read_notes([directory], engine.id).values()
        ids |= {note.container_id for note in notes if note.paused_at is not None}
        ids |= {entry.container_id for entry in journal_entries(engine, directory) if entry.state}
    return sorted(
        container.name or container.id[:12]
        for container in engine.containers()
        if container.state == "paused" and container.id not in ids
    )
