"""Putting containers back as the journal says that they were found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dltools.apply import limits, original
from dltools.apply.journal import Entry, Journal
from dltools.engine import cgroup
from dltools.engine.containers import Container, Engine, GoneError, RefusedError
from dltools.plan.realisation.settings import Settings, differs
from dltools.plan.records import Result, Status

RUNNING = ("running", "paused")
"""States of a container whose processes are there."""

Tell = Callable[[Result], None]
"""What is called with each result as soon as there is one."""


def undo(
    engine: Engine,
    journal: Journal,
    tell: Tell,
    *,
    only: Iterable[str] | None = None,
    dry_run: bool = False,
) -> list[Result]:
    """Put back all containers in the journal, or those with the ids `only`; forget those that are
    back, or gone."""
    wanted = None if only is None else set(only)
    mounts = cgroup.mounts()
    results = []
    for number, entry in enumerate(journal.entries(engine.id), 1):
        if wanted is None or entry.container_id in wanted:
            result, forget = _undo(engine, number, entry, mounts, dry_run)
            if forget and not dry_run:
                journal.remove(entry)
            results.append(result)
            tell(result)
    return results


def _undo(
    engine: Engine, number: int, entry: Entry, mounts: list[cgroup.Mount], dry_run: bool
) -> tuple[Result, bool]:
    """Return what became of an entry, and whether it has done its service."""
    blank = Result(number, Status.STALE, entry.container_id, entry.container_name)
    try:
        container = engine.inspect(entry.container_id)
        place = limits.locate(engine, container, mounts)
        before = original.now(engine, place)
        found = replace(blank, before=before, after=before)
        state = _state_to_restore(container, entry)
        if state is not None and not dry_run:
            set_state(engine, container.id, state)
        if original.is_back(place, entry):
            done = Status.PLANNED if dry_run else Status.APPLIED
            return replace(found, status=done if state else Status.UNCHANGED), True
        wanted = {k: v for k, v in entry.settings.items() if k in before}
        if dry_run:
            return replace(found, status=Status.PLANNED, after=wanted), False
        original.put_back(engine, place, entry)
        result = read_back(engine, found, place, wanted)
    except GoneError:
        return replace(blank, status=Status.UNCHANGED, error="gone"), True
    except RefusedError as error:
        return replace(blank, status=Status.FAILED, error=str(error)), False
    except OSError as error:
        return replace(blank, status=Status.FAILED, error=str(error.strerror or error)), False
    return result, result.status is Status.APPLIED


def read_back(engine: Engine, found: Result, place: limits.Place, wanted: Settings) -> Result:
    """Return a result with the settings that are in force now, and whether they are as wanted."""
    try:
        after = {k: v for k, v in original.now(engine, place).items() if k in wanted}
    except GoneError:
        return replace(found, status=Status.STALE, error="gone")
    if differs(wanted, after, place.cpus):
        return replace(found, status=Status.FAILED, after=after,
                       error="accepted, but another limit is in force")  # fmt: skip
    return replace(found, status=Status.APPLIED, after=after)


def set_state(engine: Engine, container_id: str, state: str) -> None:
    """Pause a container, or let it go on; one that is so already is left so.

    Raises `GoneError` or `RefusedError`.
    """
    try:
        (engine.pause if state == "paused" else engine.unpause)(container_id)
    except RefusedError:
        if engine.inspect(container_id).state != state:
            raise


def _state_to_restore(container: Container, entry: Entry) -> str | None:
    """Return the state that a container is to be put back into, None where it is in it."""
    if entry.state is None or container.state not in RUNNING or container.state == entry.state:
        return None
    return entry.state
