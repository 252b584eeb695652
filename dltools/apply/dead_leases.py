"""Undoing what is under a lease that is over: of a run that has died, or has left it behind."""

from __future__ import annotations

from pathlib import Path

from dltools.apply.journal import Journal, timestamp
from dltools.apply.undo import undo
from dltools.engine.identity import own_records
from dltools.engine.interface import Engine
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.plan.records import Result, Status


def end_dead_leases(engine: Engine, directory: Path, run: ApplyRun = UNKNOWN_RUN) -> list[Result]:
    """Restore the containers that are under lease of other runs than this one, or were until now,
    and return what became of each. The state in `directory` must be locked: so these runs are over.

    Raises `DataError`, or as the engine does.
    """
    journal = Journal(directory / "journal")
    now = timestamp()
    leased = {
        entry.container_id: entry
        for entry in own_records(engine, journal.entries(engine.id))
        if entry.leased_by.pid not in (0, run.pid) or entry.has_expired(now)
    }
    results = undo(engine, journal, lambda _: None, only=leased) if leased else []
    # What somebody else has changed since is not to be tried again and again.
    journal.keep(leased[one.container_id] for one in results if one.status is Status.SKIPPED)
    return results
