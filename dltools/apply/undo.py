"""Recovery after a run: restoring containers, ending leases, unpausing.

A run writes these files of the state directory before it acts:

    apply.lock            who holds the state, while it does; the kernel frees the lock
    journal/ID.json       a container as it was, and under whose lease it is changed; removed once
                          it is restored, or gone
    rotation/ID.json      a container that may be paused between turns; removed once it goes on
    left-alone/ID.json    a container that no plan may touch, whoever has seen to that
    migrations/ID.json    the step that a move is taking; removed once it is rolled back, or
                          its new container is gone
    told/file.json        the file that tells owners who waits; both are removed with the run

A file appears whole, and is on disk before the act. So it may tell of an act that was not done, but
nothing is done untold. To mend is to compare with the container, and to restore what differs.

- `kill -9`, a crash: the watchdog (`leases`) takes the lock, unpauses what notes of turns name, and
  undoes what the dead run held under lease. What was set for good stays until `dl-apply --undo`.
  The engine may yet carry out what the dead run asked of it. `apply.lock` still names the dead run
  then, and whoever takes the lock waits a second first (`locks`).
- The watchdog killed, too: the next run does the same before it begins, for each of its engines.
  Files that were being written are staged under another name; the next run removes them.
- A run that hangs, or is stopped for too long: the watchdog kills it, and goes on as above.
- A lost engine: one alone is waited for; then the run ends, and its error says what is paused and
  how to unpause it. One of several is connected to again, and mended then (`actuator`). The
  watchdog tries for an hour. After that, the next run that reaches the engine mends it.
- A power failure: as if all were killed. The engine starts containers unpaused, with the limits on
  its record: where those are dl-apply's, the next run undoes those under lease, `--undo` all.
- A move that was cut off: the next run goes on from its step, or rolls it back (`migrate/`).
- A model that was being copied: it is not there, and the same action copies it (`delivering`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dltools.actions.plans import OnResult, Result, Status
from dltools.actions.settings import Settings, as_found
from dltools.apply.original_settings import (
    bring_into_force,
    foreign_settings,
    is_restored,
    restore,
    timestamp,
)
from dltools.apply.refusals import FOREIGN, has_processes
from dltools.apply.settings_update import read_back
from dltools.engine.interface import Container, Engine, GoneError, LocatedContainer, RefusedError
from dltools.engine.journal import Entry, Journal
from dltools.engine.limits.cpu_limits import Locator, current_settings, settings_then
from dltools.engine.links import own_records
from dltools.engine.pauses import set_state, unpause
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.turn_notes import TurnNotes
from dltools.errors import DataError
from dltools.notation.limits import only


def undo(
    engine: Engine,
    journal: Journal,
    on_result: OnResult,
    *,
    only: Collection[str] | None = None,
    dry_run: bool = False,
    is_forced: bool = False,
) -> list[Result]:
    """Restore all containers in the journal, or those with the ids `only`. Settings that somebody
    else has changed since are left alone, unless `is_forced`.

    Entries of containers that are as they were, or gone, are removed; what is gone has no result.
    Raises `DataError` where an entry is damaged, if it is to restore all, once it has the others.
    """
    undoing = _Undoing(engine, dry_run=dry_run, is_forced=is_forced)
    results = []
    for number, entry in enumerate(own_records(engine, journal.all(skip=(DataError,))), 1):
        if only is not None and entry.container_id not in only:
            continue
        try:
            result = undoing.undo(number, entry)
        except GoneError:
            if not dry_run:
                journal.remove(entry)
            continue
        is_done = result.status in (Status.APPLIED, Status.UNCHANGED) and not result.error
        if not dry_run and is_done:
            journal.remove(entry)
        results.append(result)
        on_result(result)
    if only is None:
        journal.all()  # raises where an entry is damaged
    return results


class _Undoing:
    """Restores containers one by one; a dry run only says what it would do."""

    def __init__(self, engine: Engine, *, dry_run: bool, is_forced: bool) -> None:
        self._engine = engine
        self._dry_run = dry_run
        self._is_forced = is_forced
        self._locator = Locator(engine)

    def undo(self, number: int, entry: Entry) -> Result:
        """Return what becomes of an entry, whatever goes wrong with its container.

        Raises `GoneError` where the container is gone.
        """
        result = Result(number, Status.STALE, entry.container_id, entry.container_name)
        try:
            located = self._locator.locate_by_id(entry.container_id)
            before = as_found(current_settings(self._engine, located))
            name = located.container.name  # it may have been renamed
            result = replace(result, container_name=name, before=before, after=before)
            return self._restore(located, entry, result)
        except RefusedError as error:
            return replace(result, status=Status.FAILED, before={}, after={}, error=str(error))

    def _restore(self, located: LocatedContainer, entry: Entry, stale: Result) -> Result:
        state = _state_to_restore(located.container, entry)
        if state is not None and not self._dry_run:
            set_state(self._engine, entry.container_id, state)
        foreign: set[str] = set()
        if not self._is_forced:
            foreign = foreign_settings(self._engine, located, entry)
        if foreign and not self._dry_run:
            bring_into_force(self._engine, located, entry)
        names, error = entry.names - foreign, FOREIGN if foreign else None
        done = Status.PLANNED if self._dry_run else Status.APPLIED
        if is_restored(self._engine, located, entry, names):
            if error:
                return replace(stale, status=Status.SKIPPED, error=error)
            return replace(stale, status=done if state else Status.UNCHANGED)
        if self._dry_run:
            after = self._settings_to_restore(located, entry, stale, names)
            return replace(stale, status=done, after=after, error=error)
        restore(self._engine, located, entry, names)
        settings = self._settings_to_restore(located, entry, stale, names)
        result = read_back(self._engine, stale, located, settings)
        if result.status is Status.STALE:
            raise GoneError(str(result.error))
        return replace(result, error=result.error or error)

    def _settings_to_restore(
        self, located: LocatedContainer, entry: Entry, result: Result, names: set[str]
    ) -> Settings:
        """Return the original settings that can be seen on the container now. Of one that has
        ended, only the record shows: there a quota counts that counted as none below a cgroup that
        gave no more, as the cgroup of a pod."""
        settings = entry.settings
        if entry.kernel and located.controller("cpu") is None:
            settings = settings_then(self._engine, located, entry.fields)
        others = {n: value for n, value in result.before.items() if n not in names}
        original = only(settings, result.before.keys() & entry.settings.keys())
        return as_found({**original, **only(others, original)})


def _state_to_restore(container: Container, entry: Entry) -> str | None:
    """Return the state that a container had, None if it has it, has no processes, or has been
    started since: whoever did so meant it to run."""
    if entry.state is None or not has_processes(container) or container.state == entry.state:
        return None
    return entry.state if entry.started == container.started_text else None


@dataclass(frozen=True, slots=True)
class Leftover:
    """A container that was left paused. `refusal` says why the engine leaves it paused, "" where
    it is unpaused now."""

    name: str
    refusal: str = ""


def unpause_leftovers(engine: Engine, directory: Path) -> Iterator[Leftover]:
    """Unpause the containers that notes in a directory name, and yield those that were paused;
    what somebody else has paused stays so.

    Raises `DataError` for a damaged note.
    """
    notes = TurnNotes(directory)
    for note in notes.all():
        if not own_records(engine, [note]):
            continue
        try:
            was_paused = note.holds(engine) and unpause(engine, note.container_id)
        except RefusedError as error:
            yield Leftover(note.container_name, str(error))
            continue
        notes.remove(note)
        if was_paused:
            yield Leftover(note.container_name)


def end_dead_leases(engine: Engine, directory: Path, run: ApplyRun = UNKNOWN_RUN) -> list[Result]:
    """Restore the containers that are under lease of other runs than this one, or were until now,
    and return what became of each. The state in `directory` must be locked: so these runs are over.

    Raises `DataError`, or as the engine does.
    """
    journal = Journal(directory / "journal")
    now = timestamp()
    leased = {
        entry.container_id: entry
        for entry in own_records(engine, journal.all(skip=(DataError,)))
        if (entry.leased_by.pid, entry.leased_by.began) not in ((0, 0), (run.pid, run.began))
        or entry.has_expired(now)
    }
    results = undo(engine, journal, lambda _: None, only=leased) if leased else []
    # What somebody else has changed since is not to be tried again and again.
    left = (
        result
        for result in results
        if result.error and result.status in (Status.SKIPPED, Status.APPLIED)
    )
    journal.lease(leased[result.container_id] for result in left)
    return results
