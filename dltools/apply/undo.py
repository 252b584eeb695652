"""Restoring containers as the journal says that they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dltools.apply.journal import Entry, Journal
from dltools.apply.located import Locator
from dltools.apply.original import is_restored, restore
from dltools.apply.pauses import set_state
from dltools.apply.reasons import GONE, has_processes
from dltools.apply.settings import current_settings
from dltools.apply.settings_update import read_back
from dltools.engine.containers import Container, Engine, GoneError, RefusedError
from dltools.plan.records import Result, Status


def undo(
    engine: Engine,
    journal: Journal,
    on_result: Callable[[Result], None],
    *,
    only: Iterable[str] | None = None,
    dry_run: bool = False,
) -> list[Result]:
    """Restore all containers in the journal, or those with the ids `only`.

    Entries of containers that are as they were, or gone, are removed.
    """
    wanted = None if only is None else set(only)
    locator = Locator(engine)
    restore_or_plan = _plan if dry_run else _restore
    results = []
    for number, entry in enumerate(journal.entries(engine.id), 1):
        if wanted is not None and entry.container_id not in wanted:
            continue
        found = Result(number, Status.STALE, entry.container_id, entry.container_name)
        try:
            result = restore_or_plan(engine, locator, entry, found)
        except GoneError:
            result = replace(found, status=Status.UNCHANGED, error=GONE)
        except RefusedError as error:
            result = replace(found, status=Status.FAILED, error=str(error))
        except OSError as error:
            result = replace(found, status=Status.FAILED, error=str(error.strerror or error))
        if not dry_run and result.status in (Status.APPLIED, Status.UNCHANGED):
            journal.remove(entry)
        results.append(result)
        on_result(result)
    return results


def _plan(engine: Engine, locator: Locator, entry: Entry, found: Result) -> Result:
    """Return what would become of an entry."""
    located = locator.find(entry.container_id)
    before = current_settings(engine, located)
    found = replace(found, before=before, after=before)
    if not is_restored(located, entry):
        wanted = {name: value for name, value in entry.settings.items() if name in before}
        return replace(found, status=Status.PLANNED, after=wanted)
    is_changed = _state_to_restore(located.container, entry) is not None
    return replace(found, status=Status.PLANNED if is_changed else Status.UNCHANGED)


def _restore(engine: Engine, locator: Locator, entry: Entry, found: Result) -> Result:
    """Restore a container's state and settings, and return what became of it."""
    located = locator.find(entry.container_id)
    before = current_settings(engine, located)
    found = replace(found, before=before, after=before)
    state = _state_to_restore(located.container, entry)
    if state is not None:
        set_state(engine, entry.container_id, state)
    if is_restored(located, entry):
        return replace(found, status=Status.APPLIED if state else Status.UNCHANGED)
    restore(engine, located, entry)
    wanted = {name: value for name, value in entry.settings.items() if name in before}
    return read_back(engine, found, located, wanted)


def _state_to_restore(container: Container, entry: Entry) -> str | None:
    """Return the state that a container had, None where it has it, or no processes."""
    if entry.state is None or not has_processes(container) or container.state == entry.state:
        return None
    return entry.state
