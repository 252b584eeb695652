"""What dl-apply holds: containers that it has changed and not yet put back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dltools.apply import limits, original
from dltools.apply.journal import Entry, Journal
from dltools.engine import cgroup, pauses
from dltools.engine.containers import Engine, GoneError
from dltools.engine.pauses import Note, Run
from dltools.errors import DataError
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.realisation.settings import Settings


@dataclass(frozen=True, slots=True)
class Held:
    """A container that is held: the settings that it had and has (None: it is gone), since when
    (RFC 3339, "" where that was not noted), by which run, and in which state directory it says."""

    container_id: str
    name: str
    found: Settings
    now: Settings | None
    since: str
    run: Run
    place: Path


def held(engine: Engine, places: Iterable[Path]) -> list[Held]:
    """Return what is held of an engine's containers, by name. Raises as the engine does."""
    mounts = cgroup.mounts()
    found: dict[str, Held] = {}
    for place in places:
        turns = pauses.notes([place], engine.id)
        entries = {entry.container_id: entry for entry in entries_in(engine, place)}
        for key in {**entries, **turns}:
            if key not in found:
                found[key] = _held(engine, mounts, key, entries.get(key), turns.get(key), place)
    return sorted(found.values(), key=lambda one: (one.name, one.container_id))


def entries_in(engine: Engine, place: Path) -> list[Entry]:
    """Return what a state directory's journal holds of an engine's containers; [] where that cannot
    be read, since it may be somebody else's."""
    try:
        return Journal(place / "journal").entries(engine.id)
    except DataError:
        return []


def _held(
    engine: Engine,
    mounts: list[cgroup.Mount],
    key: str,
    entry: Entry | None,
    turn: Note | None,
    place: Path,
) -> Held:
    then: Settings = dict(entry.settings) if entry else {}
    now: Settings | None
    try:
        container = engine.inspect(key)
        where = limits.locate(engine, container, mounts)
        now = original.now(engine, where)
        then = {k: v for k, v in then.items() if k in now} if entry else dict(now)
        if turn is not None or (entry and entry.state):
            then["state"] = (entry and entry.state) or "running"
            now["state"] = container.state
        if turn is not None and turn.seconds and turn.run.alive:
            now |= {"group": turn.group, "turn_s": turn.seconds}
    except GoneError:
        now = None
    noted = entry or turn
    assert noted is not None
    name = entry.container_name if entry else turn.name if turn else ""
    latest = turn.run if turn and (turn.run.alive or not entry) else noted.run
    return Held(key, name, then, now, noted.since, latest, place)


def unusual(engine: Engine) -> Mapping[str, Settings]:
    """Return the running containers, by name, whose CPU settings are not the engine's defaults, or
    that are paused: those settings alone."""
    mounts = cgroup.mounts()
    found: dict[str, Settings] = {}
    for listed in engine.containers():
        try:
            container = engine.inspect(listed["Id"])
            settings = limits.in_force(limits.locate(engine, container, mounts))
        except GoneError:
            continue
        odd = {k: v for k, v in settings.items() if v not in (None, DEFAULT_CPU_WEIGHT)}
        if container.state == "paused":
            odd["state"] = "paused"
        if odd:
            found[container.name] = odd
    return found
